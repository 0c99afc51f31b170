// The launch over time: drag over a stretch, or move its two ends with the keyboard, and read its means and sums.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const time = (ns) => (ns >= 1e9 ? `${(ns / 1e9).toPrecision(3)} s` : ns >= 1e6 ? `${(ns / 1e6).toPrecision(3)} ms` : ns >= 1e3 ? `${(ns / 1e3).toPrecision(3)} µs` : `${ns.toFixed(0)} ns`);
  const short = (value) => (value >= 1000 ? Math.round(value).toLocaleString("en") : value === 0 ? "0" : String(Number(value.toPrecision(3))));

  const start = (holder) => {
    const box = holder.closest(".timeline"), data = JSON.parse(holder.textContent);
    const columns = data.lanes[0]?.values.length ?? 0;
    if (!columns) return;
    const drawn = [...box.querySelectorAll("svg:not(.key)")];
    const marks = drawn.map((svg) => {
      const mark = document.createElementNS(SVG, "rect");
      mark.setAttribute("class", "chosen");
      mark.setAttribute("height", "1");
      svg.append(mark);
      return { mark, width: svg.viewBox.baseVal.width };
    });

    const tools = document.createElement("div");
    tools.className = "tools";
    const end = (label, value) => {
      const holder = document.createElement("label"), input = document.createElement("input");
      Object.assign(input, { type: "range", min: 0, max: columns, step: 1, value });
      holder.append(label, " ", input);
      tools.append(holder);
      return input;
    };
    const from = end("From", 0), to = end("to", columns);
    const told = document.createElement("p");
    told.className = "readout small";
    told.setAttribute("aria-live", "polite");
    box.append(tools, told);

    const show = () => {
      const a = Math.min(from.valueAsNumber, columns - 1), b = Math.max(to.valueAsNumber, a + 1), whole = b - a === columns;
      for (const { mark, width } of marks) {
        mark.setAttribute("x", (a / columns) * width);
        mark.setAttribute("width", whole ? 0 : ((b - a) / columns) * width);
      }
      const at = (column) => time((column / columns) * data.duration);
      from.setAttribute("aria-valuetext", at(a));
      to.setAttribute("aria-valuetext", at(b));
      const parts = data.lanes.map(({ title, unit, counts, values }) => {
        const known = values.slice(a, b).filter((value) => value !== null);
        if (!known.length) return `${title}: no sample`;
        const sum = known.reduce((total, value) => total + value, 0);
        return counts ? `${title}: ${short(sum)} in all` : `${title} ${short(sum / known.length)}${unit ? `\u00a0${unit}` : ""}`;
      });
      const stretch = whole ? "Whole launch" : `${at(a)} to ${at(b)}, ${short((100 * (b - a)) / columns)}\u00a0% of it`;
      told.textContent = `${stretch}: ${parts.join(" · ")}`;
    };
    // The address names the stretch, so that it can be sent: #timeline?30500-42100, in nanoseconds.
    const id = box.closest("[id]").id;
    const named = () => {
      const [name, stretch] = location.hash.slice(1).split("?");
      const found = name === id && /^(\d{1,15})-(\d{1,15})$/.exec(stretch ?? "");
      if (!found) return;
      const [a, b] = found.slice(1).map((ns) => (Number(ns) / data.duration) * columns);
      if (!(a < b && a < columns)) return;
      from.value = Math.round(a);
      to.value = Math.max(from.valueAsNumber + 1, Math.round(b));
      show();
      box.scrollIntoView({ block: "center", behavior: "instant" });
    };
    const keep = () => {
      const [a, b] = [from, to].map((input) => Math.round((input.valueAsNumber / columns) * data.duration));
      const whole = from.valueAsNumber === 0 && to.valueAsNumber === columns;
      history.replaceState(null, "", whole ? `#${id}` : `#${id}?${a}-${b}`);
    };
    addEventListener("hashchange", named);
    for (const input of [from, to]) input.addEventListener("change", keep);
    from.addEventListener("input", () => { to.value = Math.max(to.valueAsNumber, from.valueAsNumber + 1); show(); });
    to.addEventListener("input", () => { from.value = Math.min(from.valueAsNumber, to.valueAsNumber - 1); show(); });

    let pressed = null;
    const column = (svg, event) => {
      const frame = svg.getBoundingClientRect();
      return Math.min(columns, Math.max(0, ((event.clientX - frame.left) / frame.width) * columns));
    };
    for (const svg of drawn) {
      svg.addEventListener("pointerdown", (event) => {
        if (event.button) return;
        pressed = column(svg, event);
        svg.setPointerCapture(event.pointerId);
      });
      svg.addEventListener("pointermove", (event) => {
        if (pressed === null) return;
        const now = column(svg, event);
        from.value = Math.floor(Math.min(pressed, now));
        to.value = Math.ceil(Math.max(pressed, now));
        show();
      });
      const done = (event) => {
        // A click without a drag shows the whole launch again.
        if (event.type === "pointerup" && pressed !== null && Math.abs(column(svg, event) - pressed) < columns / 500) {
          from.value = 0;
          to.value = columns;
          show();
        }
        if (event.type === "pointerup" && pressed !== null) keep();
        pressed = null;
      };
      svg.addEventListener("pointerup", done);
      svg.addEventListener("pointercancel", done);
    }
    show();
    named();
  };
  for (const holder of document.querySelectorAll("script[data-timeline]")) start(holder);
})();
