// A history that can be asked: the run nearest to the pointer, in words. Without it each dot has its own title.
"use strict";
(() => {
  const start = (svg) => {
    const told = svg.closest("figure").querySelector(".readout"), usual = told.textContent;
    const dots = [...svg.querySelectorAll("circle")].map((dot) => ({ dot, x: dot.cx.baseVal.value, y: dot.cy.baseVal.value }));
    // Where the picture is wider than the screen, the newest runs are what one came for.
    svg.parentElement.scrollLeft = svg.parentElement.scrollWidth;
    let chosen = null;
    const choose = (next) => {
      if (next === chosen) return;
      chosen?.classList.remove("asked");
      chosen = next;
      chosen?.classList.add("asked");
      told.textContent = chosen ? chosen.querySelector("title").textContent : usual;
    };
    svg.addEventListener("pointermove", (event) => {
      const frame = svg.getBoundingClientRect(), scale = svg.viewBox.baseVal.width / frame.width;
      const x = (event.clientX - frame.left) * scale, y = (event.clientY - frame.top) * scale;
      // Runs stand side by side: how far left or right counts most.
      let best = null;
      for (const one of dots) {
        const far = Math.hypot(one.x - x, (one.y - y) / 4);
        if (!best || far < best.far) best = { far, dot: one.dot };
      }
      choose(best && best.far < 40 ? best.dot : null);
    });
    svg.addEventListener("pointerleave", () => choose(null));
  };
  addEventListener("DOMContentLoaded", () => {
    for (const svg of document.querySelectorAll(".history-plot")) start(svg);
  });
})();
