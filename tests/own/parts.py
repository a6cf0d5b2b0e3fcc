"""Parts as a user writes them, each with one fault; and a task without one."""

import random

import torch
from torch import nn


def copy(generator, vocab, length):
    text = torch.randint(1, vocab, (length // 2,), generator=generator)
    tokens = torch.cat((text, torch.zeros(1, dtype=torch.long), text[:-1]))
    answers = torch.full((length,), -100)
    answers[length // 2 :] = text
    return tokens, answers


def write(state, token):
    return 0.9 * state + token.v[..., :, None] * token.k[..., None, :]


class LeakyRule:
    """Its fast form writes the chunk's last token from the first on."""

    def step(self, state, token):
        return write(state, token)

    def write(self, state, tokens):
        last = tokens.v[:, -1:, :, :, None] * tokens.k[:, -1:, :, None, :]
        return state[:, None] + last.expand(-1, tokens.k.shape[1], -1, -1, -1)


class StatefulRule:
    def __init__(self):
        self.calls = 0

    def step(self, state, token):
        self.calls += 1
        return write(state, token) * (1 + 0.001 * self.calls)


class RandomRule:
    def step(self, state, token):
        return write(state, token) + 0.1 * torch.randn_like(state)


class HiddenRule:
    """Reads what it wrote last from itself, so that its state is not all of it."""

    def step(self, state, token):
        if not state.any():
            self.last = torch.zeros_like(state)
        self.last = 0.5 * self.last + token.v[..., :, None] * token.k[..., None, :]
        return state + self.last


class CutRule(nn.Module):
    def __init__(self, heads):
        super().__init__()
        self.rate = nn.Parameter(torch.ones(heads))

    def step(self, state, token):
        return write(state.detach(), token) * self.rate[:, None, None]


class UnusedRule(CutRule):
    def step(self, state, token):
        return write(state, token)


class WrongFastRule:
    def step(self, state, token):
        return write(state, token)

    def write(self, state, tokens):
        new = (tokens.v[..., :, None] * tokens.k[..., None, :]).cumsum(1)
        return state[:, None] + new


class ForgetfulRule:
    """Its fast form is right from the first state on, and only from there: a decay short."""

    def step(self, state, token):
        return write(state, token)

    def write(self, state, tokens):
        states, online = [state], torch.zeros_like(state)
        for t in range(tokens.k.shape[1]):
            online = 0.9 * online + tokens.v[:, t, :, :, None] * tokens.k[:, t, :, None, :]
            states.append(0.9**t * state + online)
        return torch.stack(states[1:], 1)


def leaky_gate(scores, x):
    return scores * (2 + x.mean((1, 2)))[:, None, None, None]


def mixing_gate(scores, x):
    return scores * (2 + x.mean((0, 2)).cumsum(0)[:, None])


def random_gate(scores):
    return scores * (1 + random.random())


class StatefulGate:
    def __init__(self):
        self.calls = 0

    def __call__(self, scores, age):
        self.calls += 1
        return scores * self.calls


def leaky_aggregate(reads, weights):
    return (weights[..., None] * reads).sum(-2).flip(2)


def random_aggregate(reads, weights):
    return (weights[..., None] * reads).sum(-2) * random.random()


def unmasked_aggregate(reads):
    """What is not visible reads as zero, and is a maximum where all else is below."""
    return reads.amax(-2)


class StatefulAggregate:
    def __init__(self):
        self.last = 0.0

    def __call__(self, reads, weights):
        y = (weights[..., None] * reads).sum(-2)
        self.last, y = y.mean().item(), y + self.last
        return y


def random_task(generator, vocab, length):
    return copy(None, vocab, length)


class StatefulTask:
    def __init__(self, vocab, length):
        self.vocab, self.length, self.made = vocab, length, 0

    def __call__(self, generator):
        self.made += 1
        tokens, answers = copy(generator, self.vocab, self.length)
        return torch.where(tokens == 0, self.made % self.vocab, tokens), answers


def small_task(generator, vocab, length):
    tokens = torch.randint(0, 2, (1,), generator=generator).repeat(length)
    return tokens, tokens


def wide_task(generator, vocab, length):
    tokens, answers = copy(generator, vocab, length)
    return tokens + vocab, answers
