// A roofline that can be asked: zoom, and what the roofs allow under the pointer. Without it the picture stands as it is.
"use strict";
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const short = (value, unit) => {
    for (const [factor, prefix] of [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
      if (value >= factor) return `${(value / factor).toPrecision(3)} ${prefix}${unit}`;
    }
    return `${value.toPrecision(3)} ${unit}`;
  };

  const start = (holder) => {
    const figure = holder.closest("figure"), svg = figure?.querySelector("svg.plot");
    if (!svg) return;
    const data = JSON.parse(holder.textContent);
    const box = data.box, whole = svg.viewBox.baseVal;
    const full = { x: whole.x, y: whole.y, width: whole.width, height: whole.height };
    const view = { ...full };
    const show = () => svg.setAttribute("viewBox", `${view.x} ${view.y} ${view.width} ${view.height}`);
    const clamp = () => {
      view.x = Math.min(Math.max(view.x, full.x), full.x + full.width - view.width);
      view.y = Math.min(Math.max(view.y, full.y), full.y + full.height - view.height);
    };
    const at = (event) => {
      const frame = svg.getBoundingClientRect();
      return {
        x: view.x + ((event.clientX - frame.left) / frame.width) * view.width,
        y: view.y + ((event.clientY - frame.top) / frame.height) * view.height,
      };
    };
    const zoom = (factor, centre) => {
      const width = Math.min(full.width, Math.max(full.width / 16, view.width / factor)), scale = width / view.width;
      view.x = centre.x - (centre.x - view.x) * scale;
      view.y = centre.y - (centre.y - view.y) * scale;
      view.width = width;
      view.height = full.height * (width / full.width);
      clamp();
      show();
      reset.disabled = out.disabled = view.width >= full.width;
    };
    const middle = () => ({ x: view.x + view.width / 2, y: view.y + view.height / 2 });

    // Buttons, so that no wheel is needed: a page keeps its scrolling.
    const tools = document.createElement("p");
    tools.className = "tools";
    const button = (text, label, act) => {
      const made = document.createElement("button");
      made.type = "button";
      made.textContent = text;
      made.setAttribute("aria-label", label);
      made.addEventListener("click", act);
      tools.append(made);
      return made;
    };
    button("+", "Zoom in", () => zoom(1.6, middle()));
    const out = button("−", "Zoom out", () => zoom(1 / 1.6, middle()));
    const reset = button("Whole", "Show the whole roofline", () => { Object.assign(view, full); zoom(1, middle()); });
    out.disabled = reset.disabled = true;
    const told = document.createElement("span");
    told.className = "readout small muted";
    told.textContent = "Point at the picture; Ctrl and the wheel, or a double click, zoom.";
    tools.append(told);
    figure.prepend(tools);

    svg.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 1.25 : 0.8, at(event));
    }, { passive: false });
    svg.addEventListener("dblclick", (event) => { event.preventDefault(); zoom(2, at(event)); });

    // Log axes: a place in the picture is an intensity and a speed.
    const between = (from, to, low, high) => ({
      value: (place) => low * (high / low) ** ((place - from) / (to - from)),
      place: (value) => from + ((to - from) * Math.log(value / low)) / Math.log(high / low),
    });
    const across = between(box.left, box.right, ...data.x), up = between(box.bottom, box.top, ...data.y);
    const line = () => {
      const made = document.createElementNS(SVG, "line");
      made.setAttribute("class", "cross");
      svg.append(made);
      return made;
    };
    const vertical = line(), horizontal = line();
    const cross = (x, y) => {
      for (const [element, a, b, c, d] of [[vertical, x, box.top, x, box.bottom], [horizontal, box.left, y, box.right, y]]) {
        element.setAttribute("x1", a); element.setAttribute("y1", b); element.setAttribute("x2", c); element.setAttribute("y2", d);
      }
      svg.classList.add("asked");
    };
    let held = null;
    svg.addEventListener("pointerdown", (event) => {
      if (view.width >= full.width) return;
      held = { ...at(event) };
      svg.setPointerCapture(event.pointerId);
    });
    svg.addEventListener("pointerup", () => { held = null; });
    svg.addEventListener("pointermove", (event) => {
      const here = at(event);
      if (held) {
        view.x += held.x - here.x;
        view.y += held.y - here.y;
        clamp();
        show();
        return;
      }
      if (here.x < box.left || here.x > box.right || here.y < box.top || here.y > box.bottom) return;
      const near = data.points
        .map((point) => ({ point, far: Math.hypot(across.place(point.x) - here.x, up.place(point.y) - here.y) }))
        .sort((a, b) => a.far - b.far)[0];
      if (near && near.far < 12 * (view.width / full.width)) {
        cross(across.place(near.point.x), up.place(near.point.y));
        told.textContent = near.point.text;
        return;
      }
      const intensity = across.value(here.x), speed = up.value(here.y);
      cross(here.x, here.y);
      const allowed = data.roofs.map((roof) => `${roof.label} ${short(Math.min(data.peak, intensity * roof.peak), "FLOP/s")}`);
      told.textContent = `${intensity.toPrecision(3)} FLOP/byte, ${short(speed, "FLOP/s")}. The roofs allow here: ${allowed.join(", ")}.`;
    });
    svg.addEventListener("pointerleave", () => svg.classList.remove("asked"));
  };

  addEventListener("DOMContentLoaded", () => {
    for (const holder of document.querySelectorAll("script[data-roofline]")) start(holder);
  });
})();
