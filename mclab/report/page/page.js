"use strict";
// A number that a cell begins with: "0.985 ± 0.008 (5)", "8,176", "832 + 3,808" (their sum), "<0.001", "−0.04 […]".
function value(text) {
  const found = text.replace(/,(?=\d{3}\b)/g, "").replace(/^\u2212/, "-").match(/^<?([-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?: \+ (\d+))?/i);
  return found ? Number(found[1]) + Number(found[2] || 0) - (text[0] === "<" ? 1e-9 : 0) : null;
}
const words = new Intl.Collator("en", { numeric: true });
for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, place) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    head.replaceChildren(button);
    const texts = new Map(rows.map((row) => [row, row.cells[place].textContent]));
    const values = new Map(rows.map((row) => [row, value(texts.get(row))]));
    const numbers = [...values.values()].filter((each) => each !== null).length * 2 >= rows.length;
    const before = (one, other) => {
      if (!numbers) return words.compare(texts.get(one), texts.get(other));
      return values.get(one) - values.get(other);
    };
    button.addEventListener("click", () => {
      const order = { ascending: "descending", descending: null }[head.getAttribute("aria-sort")];
      const next = head.hasAttribute("aria-sort") ? order : "ascending";
      heads.forEach((each) => each.removeAttribute("aria-sort"));
      if (next) head.setAttribute("aria-sort", next);
      const known = numbers ? rows.filter((row) => values.get(row) !== null) : rows;
      const rest = rows.filter((row) => !known.includes(row));
      const sign = next === "descending" ? -1 : 1;
      const sorted = next ? [...known].sort((one, other) => sign * before(one, other)) : rows;
      body.append(...sorted, ...(next ? rest : []));
    });
  });
  const figure = table.closest("figure"), input = figure.querySelector("input"), count = figure.querySelector(".count");
  const texts = rows.map((row) => [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase());
  input.addEventListener("input", () => {
    const wanted = input.value.trim().toLowerCase();
    let shown = 0;
    rows.forEach((row, place) => {
      row.hidden = !texts[place].includes(wanted);
      shown += !row.hidden;
    });
    count.textContent = wanted ? `${shown} of ${rows.length} rows` : "";
  });
}
// The text of a point is shown beside the pointer at once, for the nearest point within a finger's reach.
const tip = document.getElementById("tip"), REACH = 14;
for (const svg of document.querySelectorAll(".plot svg")) {
  const points = [...svg.querySelectorAll("use > title")].map((title) => {
    const found = [title.parentNode, title.textContent];
    title.remove();
    return found;
  });
  const show = (event) => {
    const near = [];
    let least = REACH;
    for (const [use, text] of points) {
      const box = use.getBoundingClientRect();
      const far = Math.hypot(box.x + box.width / 2 - event.clientX, box.y + box.height / 2 - event.clientY);
      if (far < least - 1) near.length = 0;
      if (far < least + 1) near.push(text);
      least = Math.min(least, far);
    }
    tip.hidden = !near.length;
    tip.textContent = [...new Set(near)].slice(0, 6).join("\n");
    const right = event.clientX + tip.offsetWidth + 24 > innerWidth;
    tip.style.left = `${Math.max(4, right ? event.clientX - tip.offsetWidth - 10 : event.clientX + 14)}px`;
    tip.style.top = `${Math.min(event.clientY + 12, innerHeight - tip.offsetHeight - 4)}px`;
  };
  svg.addEventListener("pointermove", show);
  svg.addEventListener("pointerdown", show);
  svg.addEventListener("pointerleave", () => { tip.hidden = true; });
}
addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
