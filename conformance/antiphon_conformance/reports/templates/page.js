"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const grid = $("grid");

  // The grid is one stop for Tab; arrow keys, Home, End and Page keys move inside it.
  const target = (cell) => cell.querySelector("a") || cell;
  const rows = () => all("tbody tr", grid).filter((row) => !row.hidden);
  let current = null;
  const enter = (cell, focus) => {
    if (current) target(current).tabIndex = -1;
    current = cell;
    if (!cell) return;
    target(cell).tabIndex = 0;
    if (focus) {
      target(cell).focus();
      cell.scrollIntoView({ block: "nearest", inline: "nearest" });
    }
  };
  const steps = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-10, 0], PageDown: [10, 0] };
  if (grid) {
    grid.setAttribute("role", "grid");
    all("td a", grid).forEach((link) => { link.tabIndex = -1; });
    enter(grid.querySelector("tbody td"), false);
    grid.addEventListener("keydown", (event) => {
      const cell = event.target.closest("td");
      if (!cell || event.altKey || event.metaKey) return;
      const shown = rows();
      let row = shown.indexOf(cell.parentElement), column = cell.cellIndex;
      if (event.key in steps && !event.ctrlKey) {
        row += steps[event.key][0];
        column += steps[event.key][1];
      } else if (event.key === "Home") { column = 1; if (event.ctrlKey) row = 0; }
      else if (event.key === "End") { column = Infinity; if (event.ctrlKey) row = Infinity; }
      else return;
      event.preventDefault();
      const to = shown[Math.max(0, Math.min(row, shown.length - 1))];
      enter(to.cells[Math.max(1, Math.min(column, to.cells.length - 1))], true);
    });
    grid.addEventListener("focusin", (event) => {
      const cell = event.target.closest("td");
      if (cell && cell !== current) enter(cell, false);
    });
    grid.addEventListener("mousedown", (event) => {
      const cell = event.target.closest("td");
      if (cell) enter(cell, false);
    });
  }

  // A link to a finding opens it, and the keyboard goes on from there.
  const show = () => {
    const place = location.hash.length > 1 && $(decodeURIComponent(location.hash.slice(1)));
    if (!place) return;
    for (let one = place; one; one = one.parentElement) if (one.tagName === "DETAILS") one.open = true;
    place.hidden = false;
    if (place.closest("article")) place.closest("article").hidden = false;
    const focus = place.tagName === "DETAILS" ? place.querySelector("summary") : place;
    if (!focus.contains(document.activeElement)) focus.focus({ preventScroll: true });
    place.scrollIntoView({ block: "start" });
  };
  addEventListener("hashchange", show);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) show();
  });

  // The filter: words, result and area narrow the grid and the findings.
  const form = $("filter"), words = $("words"), state = $("state"), area = $("area");
  const text = new Map();
  const said = (one) => {
    if (!text.has(one)) text.set(one, one.textContent.toLowerCase());
    return text.get(one);
  };
  const narrow = () => {
    const wanted = words.value.toLowerCase().split(/\s+/).filter(Boolean);
    const column = area.selectedIndex;
    const has = (one) => wanted.every((word) => one.includes(word));
    const codes = new Map(); // the words of a case's findings belong to its row
    for (const rule of all("article.rule")) {
      const head = said(rule.querySelector("h3"));
      let left = 0;
      for (const one of all("details.finding", rule)) {
        const full = `${head} ${said(one.querySelector("summary"))}`;
        one.hidden = !((!state.value || one.dataset.s === state.value) && (!area.value || rule.dataset.area === area.value) && has(full));
        left += !one.hidden;
        const name = one.querySelector(".name").textContent.replace(/ \[.*$/, "");
        codes.set(name, `${codes.get(name) || ""} ${full}`);
      }
      const listed = rule.querySelector(":scope > .listed");
      if (listed) listed.hidden = Boolean(state.value || wanted.length) || Boolean(area.value && rule.dataset.area !== area.value);
      rule.hidden = !left && !(listed && !listed.hidden);
    }
    let count = 0, total = 0;
    if (grid) {
      for (const row of all("tbody tr", grid)) {
        const cell = column ? row.cells[column] : null;
        const result = cell ? cell.className : row.dataset.s;
        const own = said(row.cells[0]);
        row.hidden = !((!state.value || result === state.value) && (has(own) || has(`${own} ${codes.get(row.querySelector(".case").textContent) || ""}`)));
        total += 1;
        count += !row.hidden;
      }
      for (const row of all("tr", grid)) for (const cell of row.cells) cell.hidden = Boolean(column) && cell.cellIndex > 0 && cell.cellIndex !== column;
      const first = rows()[0];
      if (!current || current.hidden || current.parentElement.hidden) enter(first ? first.cells[column || 1] : null, false);
    }
    $("matched").textContent = count === total ? `${total} cases` : `${count} of ${total} cases`;
  };
  let waiting = 0;
  form.hidden = false;
  form.addEventListener("submit", (event) => event.preventDefault());
  form.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(narrow, 80); });
  form.addEventListener("reset", () => setTimeout(narrow));
  $("matched").textContent = grid ? `${grid.tBodies[0].rows.length} cases` : "";

  const tools = document.querySelector(".tools");
  if (tools) {
    tools.hidden = false;
    const set = (open) => all("details.finding").filter((one) => !one.hidden).forEach((one) => { one.open = open; });
    $("open-all").addEventListener("click", () => set(true));
    $("close-all").addEventListener("click", () => set(false));
  }
  show();
})();
