"use strict";
// Without this script the page shows everything at once, one mode below the other.
const all = (query, within = document) => [...within.querySelectorAll(query)];
const press = (buttons, pressed) =>
  buttons.forEach((button) => button.setAttribute("aria-pressed", String(button === pressed)));

document.documentElement.classList.add("js");

// Modes.
const views = all(".view");
const modes = all("[data-mode]");
const show = (mode) => views.forEach((view) => view.classList.toggle("shown", view.dataset.view === mode));
modes.forEach((button) => button.addEventListener("click", () => { press(modes, button); show(button.dataset.mode); }));
show(views[0].dataset.view);

// Light, dark, or what the device says.
const theme = document.getElementById("theme");
const themes = ["auto", "light", "dark"];
theme.addEventListener("click", () => {
  const next = themes[(themes.indexOf(document.documentElement.dataset.theme || "auto") + 1) % 3];
  if (next === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = next;
  theme.textContent = `Colours: ${next}`;
  theme.setAttribute("aria-label", next === "auto" ? "Colours: as the device says" : `Colours: ${next}`);
});

// Tables: one category at a time, sorted by any column; what has no figure comes last.
views.forEach((view) => {
  const body = view.querySelector(".figures tbody");
  const rows = all("tr", body);
  const categories = all(".categories button", view);
  const choose = (button) => {
    press(categories, button);
    rows.forEach((row) => { row.hidden = row.dataset.category !== button.dataset.category; });
  };
  categories.forEach((button) => button.addEventListener("click", () => choose(button)));
  if (categories.length) {
    choose(categories[0]);
    all(".figures .category", view).forEach((cell) => { cell.hidden = true; });
  }
  const heads = all(".figures thead th", view);
  heads.forEach((head, at) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => {
        if (at === 0) return row.cells[0].textContent;
        const found = row.cells[at] && row.cells[at].dataset.value;
        return found ? Number(found) : null;
      };
      const order = (one, two) => {
        const [a, b] = [value(one), value(two)];
        if (a === null || b === null) return (a === null) - (b === null);
        const sign = typeof a === "string" ? a.localeCompare(b) : a - b;
        return down ? -sign : sign;
      };
      [...rows].sort(order).forEach((row) => body.append(row));
    });
  });
});

// Documents.
const section = document.getElementById("documents");
if (section) {
  const [task, system] = [document.getElementById("task"), document.getElementById("system")];
  const articles = all(".document");
  const update = () => articles.forEach((each) => {
    each.hidden = each.dataset.task !== task.value || each.dataset.system !== system.value;
  });
  const systems = () => {
    const before = system.value;
    const names = articles.filter((each) => each.dataset.task === task.value).map((each) => each.dataset.system);
    system.replaceChildren(...names.map((name) => new Option(name)));
    if (names.includes(before)) system.value = before;
    update();
  };
  task.addEventListener("change", systems);
  system.addEventListener("change", update);
  systems();
  const origins = all("[data-origin]");
  origins.forEach((button) => button.addEventListener("click", () => {
    const alone = button.getAttribute("aria-pressed") === "true" ? null : button;
    press(origins, alone);
    if (alone) section.dataset.alone = alone.dataset.origin;
    else delete section.dataset.alone;
  }));
}
