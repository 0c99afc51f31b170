// What a reader can do on a page: switch the theme, sort tables, filter rows.
// Everything is readable without it.
"use strict";
(() => {
  const root = document.documentElement;
  root.classList.add("js");

  // Theme: the system's until the reader chooses. Storage may be closed to files; then the choice lasts for the page.
  const remember = (value) => { try { localStorage.setItem("gemmprof-theme", value); } catch { /* closed */ } };
  const remembered = () => { try { return localStorage.getItem("gemmprof-theme"); } catch { return null; } };
  const saved = remembered();
  if (saved === "light" || saved === "dark") root.dataset.theme = saved;
  const isDark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;

  const themeButton = () => {
    const button = document.querySelector("[data-theme-toggle]");
    if (!button) return;
    const label = () => { button.textContent = isDark() ? "Light" : "Dark"; };
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      remember(root.dataset.theme);
      label();
    });
    label();
  };

  // Tables: a header becomes a button; the key of a cell is its data-key, else its text.
  const keyOf = (cell) => {
    const text = cell ? cell.dataset.key ?? cell.textContent.trim() : "";
    const value = Number(text);
    return text === "" || Number.isNaN(value) ? text : value;
  };
  const compare = (a, b) => {
    // What is not known stands last in either direction.
    if (a === "" || b === "") return 0;
    return typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b));
  };
  const sortBy = (table, header, column) => {
    const body = table.tBodies[0];
    const wasSorted = header.getAttribute("aria-sort");
    const first = header.classList.contains("n") ? "descending" : "ascending";
    const direction = wasSorted === null ? first : wasSorted === "ascending" ? "descending" : "ascending";
    for (const other of header.parentElement.cells) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", direction);
    const sign = direction === "ascending" ? 1 : -1;
    const rows = [...body.rows].map((row, place) => {
      return { row, place, key: keyOf(row.cells[column]) };
    });
    rows.sort((a, b) => (a.key === "") - (b.key === "") || sign * compare(a.key, b.key) || a.place - b.place);
    body.append(...rows.map((item) => item.row));
  };
  const sortable = (table) => {
    [...table.tHead.rows[0].cells].forEach((header, column) => {
      if (header.dataset.sort === "no") return;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...header.childNodes);
      header.append(button);
      button.addEventListener("click", () => sortBy(table, header, column));
    });
  };

  // Filters: every word must occur in the row.
  const filter = (input) => {
    const table = document.getElementById(input.dataset.filter);
    const count = document.getElementById(`${input.dataset.filter}-count`);
    if (!table) return;
    const rows = [...table.tBodies[0].rows];
    let texts = null;
    const apply = () => {
      texts ??= rows.map((row) => `${row.querySelector("th[title]")?.title ?? ""} ${row.textContent}`.toLowerCase());
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, index) => {
        const hit = words.every((word) => texts[index].includes(word));
        row.hidden = !hit;
        shown += hit;
      });
      if (count) count.textContent = `${shown} of ${rows.length}`;
    };
    input.addEventListener("input", apply);
  };

  // A part of the program: rows that are none of its launches stand back, until another is chosen or the same again.
  const parts = (card) => {
    const tables = ["family", "launch"].map((kind) => document.getElementById(`${card.dataset.parts}${kind}-table`)).filter(Boolean);
    const told = card.querySelector("[data-chosen]"), all = told.querySelector("button");
    const words = told.firstChild, before = words.textContent;
    const buttons = [...card.querySelectorAll("button[data-only]")];
    const choose = (key, name) => {
      let left = 0, count = 0;
      for (const table of tables) {
        left = count = 0;
        for (const row of table.tBodies[0].rows) {
          const mine = !key || row.dataset.in.split(" ").includes(key);
          row.classList.toggle("elsewhere", !mine);
          left += mine;
          count += 1;
        }
      }
      for (const button of buttons) button.setAttribute("aria-pressed", String(Boolean(key) && button.dataset.only === key));
      all.hidden = !key;
      words.textContent = key ? `${left} of ${count} launches, in ${name}. ` : before;
    };
    const fold = (button, open) => {
      button.setAttribute("aria-expanded", String(open));
      document.getElementById(button.getAttribute("aria-controls")).hidden = !open;
    };
    for (const button of card.querySelectorAll("button.fold[aria-expanded='false']")) fold(button, false);
    card.addEventListener("click", (event) => {
      const folding = event.target.closest("button.fold");
      if (folding) fold(folding, folding.getAttribute("aria-expanded") !== "true");
      const button = event.target.closest("button[data-only]");
      if (!button) return;
      const again = button.getAttribute("aria-pressed") === "true";
      choose(again ? "" : button.dataset.only, button.textContent);
    });
  };

  const decoded = (hash) => { try { return decodeURIComponent(hash.slice(1)); } catch { return ""; } };

  // Copy: a text that the page holds for it, to the clipboard; where that is closed, it is selected to be copied by hand.
  const copier = (button) => {
    const source = document.getElementById(button.dataset.copy);
    const label = button.textContent;
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(source.value);
        button.textContent = "Copied";
      } catch {
        source.hidden = false;
        source.select();
        button.textContent = document.execCommand("copy") ? "Copied" : "Press Ctrl+C";
      }
      setTimeout(() => { button.textContent = label; }, 2000);
    });
  };

  // A link to what is folded unfolds it: the parts around the target, or the whole section that it names.
  const unfold = (id) => {
    const target = id && document.getElementById(id);
    if (!target) return;
    const closed = [...target.querySelectorAll(":scope > details.fold")];
    for (let around = target; around; around = around.parentElement) if (around.tagName === "DETAILS") closed.push(around);
    const shut = closed.filter((part) => !part.open);
    for (const part of shut) part.open = true;
    if (shut.length) target.scrollIntoView({ behavior: "instant" });
  };
  const unfolding = () => {
    addEventListener("hashchange", () => unfold(decoded(location.hash)));
    // The link of the place where the reader already is changes no address.
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[href^='#']");
      if (link) unfold(decoded(link.hash));
    });
    unfold(decoded(location.hash));
  };

  // Contents: the section in view is marked.
  const spy = (page) => {
    const links = new Map();
    for (const link of page.querySelectorAll(".toc a")) links.set(link.hash.slice(1), link);
    if (!links.size || !("IntersectionObserver" in window)) return;
    const seen = new Set();
    const observer = new IntersectionObserver((entries) => {
      for (const entry of entries) seen[entry.isIntersecting ? "add" : "delete"](entry.target.id);
      const current = [...links.keys()].find((id) => seen.has(id));
      for (const [id, link] of links) {
        if (id === current) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    }, { rootMargin: "-15% 0px -60% 0px" });
    for (const id of links.keys()) {
      const section = document.getElementById(id);
      if (section) observer.observe(section);
    }
  };

  // Single file: one page at a time, chosen by the fragment.
  const router = () => {
    const pages = [...document.querySelectorAll(".page[data-page]")];
    if (pages.length < 2) return;
    const spied = new Set();
    const named = () => {
      // What stands after a "?" belongs to the occupancy calculator.
      const id = decoded(location.hash).split("?")[0];
      // A line of the code is no element: the area that draws it has its page.
      return document.getElementById(id) ?? [...document.querySelectorAll("[data-code-area]")].find((area) => id.startsWith(area.dataset.prefix)) ?? null;
    };
    const show = () => {
      const target = named();
      const page = target ? target.closest(".page") ?? pages[0] : pages[0];
      for (const other of pages) other.hidden = other !== page;
      root.classList.add("routed");
      document.title = page.dataset.title || document.title;
      if (!spied.has(page)) { spied.add(page); spy(page); }
      if (target && target !== page) target.scrollIntoView();
      else scrollTo(0, 0);
    };
    addEventListener("hashchange", show);
    // Printing shows all pages, as they stand without JavaScript.
    addEventListener("beforeprint", () => { for (const page of pages) page.hidden = false; });
    addEventListener("afterprint", show);
    show();
  };

  addEventListener("DOMContentLoaded", () => {
    themeButton();
    for (const table of document.querySelectorAll("table[data-sortable]")) sortable(table);
    for (const input of document.querySelectorAll("input[data-filter]")) filter(input);
    for (const card of document.querySelectorAll("[data-parts]")) parts(card);
    for (const button of document.querySelectorAll("[data-copy]")) copier(button);
    const pages = document.querySelectorAll(".page[data-page]");
    if (pages.length > 1) router();
    else if (pages.length) spy(pages[0]);
    unfolding();
    root.dataset.ready = "true";
  });
})();
