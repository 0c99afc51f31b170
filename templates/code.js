// Source beside SASS: two panes that draw only the rows in sight, so that twenty thousand instructions scroll as well as
// twenty. What they show is the page's data; the tables in the page are for readers without scripts, and for paper.
"use strict";
(() => {
  const ROW = 19;        // pixels a row; style.css has the same
  const BEYOND = 12;     // rows drawn above and below those in sight
  const LANES = 6;       // jumps drawn side by side
  const STEPS = [0.5, 2, 4, 8, 14, 22, 35];  // per cent from which a colour begins, as in Python's `heat`

  const unpack = (text) => {
    const values = [];
    if (!text) return values;
    for (const part of text.split(",")) {
      const [value, run] = part.split("x");
      for (let left = run ? Number(run) : 1; left > 0; left -= 1) values.push(Number(value));
    }
    return values;
  };
  const unpackSteps = (text) => { let sum = 0; return unpack(text).map((step) => (sum += step)); };
  const decoded = (hash) => { try { return decodeURIComponent(hash.slice(1)); } catch { return ""; } };

  const element = (tag, className, text) => {
    const made = document.createElement(tag);
    if (className) made.className = className;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const SCALES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
  const amount = (value) => {
    if (!Number.isFinite(value)) return "";
    for (const [scale, letter] of SCALES) if (value >= scale) return `${(value / scale).toPrecision(3)} ${letter}`;
    return Number.isInteger(value) ? String(value) : value.toPrecision(3);
  };
  const percent = (value, digits = 1) => `${value.toFixed(digits)} %`;
  const heatClass = (share) => {
    const step = STEPS.filter((from) => share >= from).length;
    return step ? `h${step}` : "";
  };

  // The data as arrays, and sums over instructions.
  class Code {
    constructor(data) {
      this.files = data.files.map((file) => {
        const numbers = unpackSteps(file.numbers);
        return { ...file, numbers, rowOf: new Map(numbers.map((number, row) => [number, row])) };
      });
      this.sass = data.sass;
      this.offsets = unpackSteps(data.offsets);
      this.file = unpack(data.file);
      this.line = unpack(data.line);
      this.ownFile = unpack(data.own_file);
      this.ownLine = unpack(data.own_line);
      // The PTX is a file like the others, the last one; an instruction has a line there beside that of the source.
      this.ptxLine = unpack(data.ptx ?? "");
      this.ptxFile = this.ptxLine.length ? this.files.length - 1 : -1;
      this.inlined = data.inlined;
      this.chain = unpack(data.chain);
      this.jumps = data.jumps;
      this.access = data.access;
      this.accesses = unpack(data.accesses);
      this.samples = data.samples;
      this.heats = data.heats.map((heat) => ({ ...heat, values: unpack(heat.values) }));
      this.heat = new Map(this.heats.map((heat) => [heat.key, heat]));
      for (const heat of this.heats) heat.total = heat.values.reduce((sum, value) => heat.most ? Math.max(sum, value) : sum + value, 0);
      this.stalls = this.heats.filter((heat) => heat.key.startsWith("stall:"));
      this.plain = this.heats.filter((heat) => !heat.key.startsWith("stall:"));
      // Instructions of each line: a user's line has those of the headers' code that was inlined into it, too.
      this.ofLine = this.files.map(() => new Map());
      const put = (file, line, index) => {
        if (file < 0) return;
        const lines = this.ofLine[file], found = lines.get(line);
        if (!found) lines.set(line, [index]);
        else if (found[found.length - 1] !== index) found.push(index);
      };
      for (let index = 0; index < this.sass.length; index += 1) {
        put(this.file[index], this.line[index], index);
        for (const [file, line] of this.inlined[this.chain[index]]) put(file, line, index);
        if (this.ptxLine[index]) put(this.ptxFile, this.ptxLine[index], index);
        if (this.ownFile[index] !== this.file[index] || this.ownLine[index] !== this.line[index]) put(this.ownFile[index], this.ownLine[index], index);
      }
    }
    of(heat, indices) {
      let sum = 0, under = 0;
      for (const index of indices) sum = heat.most ? Math.max(sum, heat.values[index]) : sum + heat.values[index];
      if (!heat.over) return sum;
      for (const index of indices) under += this.heat.get(heat.over).values[index];
      return under ? sum / under : 0;
    }
    // What a heat colours by, 0 to 100: the share of the kernel's, or of the largest where values do not add up.
    share(heat, value) {
      if (heat.over) return 100 * value / 32;
      const whole = heat.key.startsWith("stall:") ? this.samples : heat.total;
      return whole ? 100 * value / whole : 0;
    }
    text(heat, value) {
      if (!value) return "";
      if (heat.key === "samples" || heat.key.startsWith("stall:")) {
        const share = this.share(heat, value);
        return share >= 0.005 ? percent(share, share < 0.1 ? 2 : 1) : "";
      }
      return amount(value);
    }
    mix(indices) {
      return this.stalls.map((heat) => [heat, this.of(heat, indices)]).filter((item) => item[1]).sort((a, b) => b[1] - a[1]);
    }
  }

  // A list of rows of one height; `draw` fills one.
  class Pane {
    constructor(box, draw) {
      this.box = box;
      this.draw = draw;
      this.count = 0;
      this.head = element("div", "code-head");
      this.body = element("div", "code-rows");
      this.overlay = null;
      const inner = element("div", "code-inner");
      inner.append(this.head, this.body);
      box.replaceChildren(inner);
      this.first = this.last = -1;
      let asked = 0;
      box.addEventListener("scroll", () => { if (!asked) asked = requestAnimationFrame(() => { asked = 0; this.update(); }); }, { passive: true });
      if ("ResizeObserver" in window) new ResizeObserver(() => this.update()).observe(box);
    }
    show(count, widest) {
      this.count = count;
      this.body.style.height = `${count * ROW}px`;
      this.box.style.setProperty("--code-width", `${Math.min(widest, 400) + 1}ch`);
      this.redraw();
    }
    redraw() { this.first = this.last = -1; this.update(); }
    update() {
      // Read before anything is written: the browser would have to lay out twice.
      const height = this.height = this.box.clientHeight, from = this.top = this.box.scrollTop;
      if (!height) return;
      const top = Math.max(0, Math.floor(from / ROW) - BEYOND);
      const end = Math.min(this.count, Math.ceil((from + height) / ROW) + BEYOND);
      this.map?.();
      if (top === this.first && end === this.last) return;
      const rows = new DocumentFragment();
      for (let row = top; row < end; row += 1) {
        const made = element("div", "code-row");
        made.dataset.row = row;
        made.style.top = `${row * ROW}px`;
        this.draw(row, made);
        rows.append(made);
      }
      this.body.replaceChildren(rows);
      this.overlay?.(top, end);
      [this.first, this.last] = [top, end];
    }
    reveal(row) {
      const top = row * ROW, box = this.box;
      if (top >= box.scrollTop && top + 2 * ROW + this.head.offsetHeight <= box.scrollTop + box.clientHeight) return;
      box.scrollTop = Math.max(0, top - box.clientHeight / 3);
      this.update();
    }
  }

  const area = (root) => {
    const code = new Code(JSON.parse(root.querySelector("script[data-code]").textContent));
    const prefix = root.dataset.prefix;
    const own = code.files.length ? code.files.findIndex((file) => file.own) : -1;
    const state = {
      heat: code.heats.some((heat) => heat.key === "samples" && heat.total) ? code.heat.get("samples") : code.heat.get("executed") ?? code.heats[0],
      // On a phone the code itself comes first; a column is a tap away.
      columns: new Set(matchMedia("(max-width: 40rem)").matches ? [] : code.plain.filter((heat) => heat.key === "live").map((heat) => heat.key)), file: Math.max(0, own), order: code.sass.map((_, index) => index), sorted: false,
      chosen: null, linkedLines: new Set(), linkedSass: new Set(), found: null,
    };
    const at = (name) => root.querySelector(`[data-part="${name}"]`);
    const bySass = [];
    const alone = (index) => (bySass[index] ??= [index]);

    const mixBar = (indices) => {
      const found = code.mix(indices);
      const total = found.reduce((sum, item) => sum + item[1], 0);
      if (!total || 100 * total / code.samples < 0.2) return element("span");
      const bar = element("span", "code-mix");
      const groups = new Map();
      for (const [heat, value] of found) groups.set(heat.colour, (groups.get(heat.colour) ?? 0) + value);
      for (const [colour, value] of groups) {
        const part = element("i", `back-${colour}`);
        part.style.width = `${100 * value / total}%`;
        bar.append(part);
      }
      bar.title = found.slice(0, 6).map(([heat, value]) => `${heat.title} ${percent(100 * value / total, 0)}`).join(", ");
      return bar;
    };
    const cells = (made, indices) => {
      const value = indices ? code.of(state.heat, indices) : 0;
      made.append(element("span", `code-n ${value ? heatClass(code.share(state.heat, value)) : ""}`, indices ? code.text(state.heat, value) : ""));
      if (code.stalls.length) made.append(indices ? mixBar(indices) : element("span"));
      for (const key of state.columns) {
        const heat = code.heat.get(key);
        made.append(element("span", "code-n", indices ? code.text(heat, code.of(heat, indices)) : ""));
      }
    };
    const heads = (pane, first, last) => {
      const names = [first, state.heat.title, ...(code.stalls.length ? ["Waits"] : []), ...[...state.columns].map((key) => code.heat.get(key).title), last];
      pane.head.replaceChildren(...names.map((name, place) => element("span", place && place < names.length - 1 && name !== "Waits" ? "code-n" : "", name)));
      const wide = [...state.columns].map((key) => ` ${Math.max(6, Math.min(9, code.heat.get(key).title.length + 1))}ch`).join("");
      pane.box.style.setProperty("--columns", `${first === "Line" ? "5ch" : "calc(6ch + 26px)"} 8.5ch${code.stalls.length ? " 3.7rem" : ""}${wide} minmax(var(--code-width), 1fr)`);
    };
    const text = (made, words) => {
      const cell = element("span", "code-text");
      cell.textContent = words;
      made.append(cell);
      return cell;
    };

    const sass = new Pane(at("sass"), (row, made) => {
      const index = state.order[row], offset = code.offsets[index].toString(16).padStart(4, "0");
      const link = element("a", "code-no", offset);
      link.href = `#${prefix}sass-${offset}`;
      made.append(link);
      cells(made, alone(index));
      const target = code.target.get(index);
      const cell = text(made, code.sass[index]);
      cell.title = code.access[code.accesses[index]];
      if (target !== undefined) {
        const words = `0x${code.offsets[target].toString(16).padStart(4, "0")}`, place = code.sass[index].indexOf(words);
        if (place >= 0) {
          const jump = element("a", "", words);
          jump.href = `#${prefix}sass-${words.slice(2)}`;
          cell.replaceChildren(code.sass[index].slice(0, place), jump, code.sass[index].slice(place + words.length));
        }
      }
      made.classList.toggle("linked", state.linkedSass.has(index));
      made.classList.toggle("chosen", state.chosen?.kind === "sass" && index >= state.chosen.from && index <= state.chosen.to);
      made.classList.toggle("found", state.found === made.dataset.row && state.foundIn === sass);
    });
    code.target = new Map(code.jumps);
    // Short jumps lie inside, each on the first lane where no other one passes.
    const lanes = [];
    const spans = code.jumps.map(([from, to]) => ({ from, to, low: Math.min(from, to), high: Math.max(from, to) })).sort((a, b) => (a.high - a.low) - (b.high - b.low));
    for (const span of spans) {
      let lane = 0;
      while (lane < LANES - 1 && lanes[lane]?.some((other) => other.low <= span.high && other.high >= span.low)) lane += 1;
      (lanes[lane] ??= []).push(span);
      span.lane = lane;
    }
    sass.overlay = (top, end) => {
      if (state.sorted || !spans.length) return;
      const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
      svg.setAttribute("class", "code-jumps");
      svg.setAttribute("aria-hidden", "true");
      svg.style.top = `${top * ROW}px`;
      svg.setAttribute("width", "26");
      svg.setAttribute("height", (end - top) * ROW);
      for (const span of spans) {
        if (span.high < top || span.low >= end) continue;
        const y = (index) => (Math.max(top - 1, Math.min(end, index)) - top + 0.5) * ROW, x = 20 - 3.4 * span.lane;
        const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
        path.setAttribute("d", `M25 ${y(span.from)}H${x}V${y(span.to)}H25m-3.5 -2.5l3.5 2.5l-3.5 2.5`);
        path.setAttribute("class", span.to < span.from ? "back" : "on");
        svg.append(path);
      }
      sass.body.append(svg);
    };

    const source = code.files.length ? new Pane(at("source"), (row, made) => {
      const file = code.files[state.file], number = file.numbers[row];
      const indices = code.ofLine[state.file].get(number);
      const link = element(indices ? "a" : "span", "code-no", number);
      if (indices) link.href = `#${prefix}${file.anchor}-${number}`;
      made.append(link);
      if (row && number !== file.numbers[row - 1] + 1) made.classList.add("after-gap");
      cells(made, indices);
      text(made, file.code[row]);
      made.classList.toggle("without", !indices);
      made.classList.toggle("linked", state.linkedLines.has(`${state.file}:${number}`));
      made.classList.toggle("chosen", state.chosen?.kind === "line" && state.chosen.file === state.file && number >= state.chosen.from && number <= state.chosen.to);
      made.classList.toggle("found", state.found === made.dataset.row && state.foundIn === source);
    }) : null;

    // A strip beside each pane: the heat of all rows at once, and where the pane stands.
    const strip = (pane, name, of) => {
      const canvas = root.querySelector(`[data-strip="${name}"]`);
      const paint = () => {
        const height = canvas.clientHeight, width = canvas.clientWidth;
        if (!height || !pane.count) return;
        canvas.width = width; canvas.height = height;
        const context = canvas.getContext("2d"), style = getComputedStyle(canvas);
        const bins = new Float64Array(height);
        const shares = of();
        for (let row = 0; row < pane.count; row += 1) {
          const bin = Math.min(height - 1, Math.floor(row * height / pane.count));
          bins[bin] = Math.max(bins[bin], shares[row]);
        }
        const most = Math.max(...bins, 1e-9), thick = Math.max(1, Math.ceil(height / pane.count));
        context.fillStyle = style.color;
        bins.forEach((share, bin) => {
          if (share <= 0) return;
          context.globalAlpha = 0.15 + 0.85 * share / most;
          context.fillRect(0, bin, width, thick);
        });
      };
      const marker = canvas.nextElementSibling;
      const mark = () => {
        const whole = pane.count * ROW;
        marker.style.top = `${100 * pane.top / whole}%`;
        marker.style.height = `${Math.min(100, 100 * pane.height / whole)}%`;
      };
      canvas.addEventListener("click", (event) => {
        pane.box.scrollTop = event.offsetY / canvas.clientHeight * pane.count * ROW - pane.box.clientHeight / 2;
      });
      pane.map = mark;
      pane.paint = paint;
    };
    const sassShares = () => state.order.map((index) => code.share(state.heat, code.of(state.heat, alone(index))));
    const lineShares = () => code.files[state.file].numbers.map((number) => {
      const indices = code.ofLine[state.file].get(number);
      return indices ? code.share(state.heat, code.of(state.heat, indices)) : 0;
    });
    strip(sass, "sass", sassShares);
    if (source) strip(source, "source", lineShares);

    const widest = (lines) => lines.reduce((most, line) => Math.max(most, line.replaceAll("\t", "    ").length), 20);
    const sassWidth = widest(code.sass);
    const refresh = () => {
      if (state.sorted) {
        const values = code.sass.map((_, index) => code.of(state.heat, alone(index)));
        state.order = code.sass.map((_, index) => index).sort((a, b) => values[b] - values[a] || a - b);
      } else state.order = code.sass.map((_, index) => index);
      heads(sass, "Offset", "Instruction");
      sass.show(code.sass.length, sassWidth);
      sass.paint();
      if (source) {
        const file = code.files[state.file];
        heads(source, "Line", "Source");
        source.show(file.numbers.length, widest(file.code));
        source.paint();
      }
    };
    const redraw = () => { sass.redraw(); source?.redraw(); };

    // What is chosen, in figures.
    const told = at("chosen");
    const indicesOf = (chosen) => {
      const found = [];
      if (chosen.kind === "sass") for (let index = chosen.from; index <= chosen.to; index += 1) found.push(index);
      else for (let line = chosen.from; line <= chosen.to; line += 1) found.push(...code.ofLine[chosen.file].get(line) ?? []);
      return [...new Set(found)].sort((a, b) => a - b);
    };
    const place = (file, line) => {
      const link = element("a", "", `${code.files[file].name}:${line}`);
      link.href = `#${prefix}${code.files[file].anchor}-${line}`;
      return link;
    };
    const tell = () => {
      const chosen = state.chosen, indices = indicesOf(chosen);
      const title = element("p", "code-title");
      const hex = (index) => code.offsets[index].toString(16).padStart(4, "0");
      if (chosen.kind === "sass") {
        title.append(element("strong", "", chosen.from === chosen.to ? hex(chosen.from) : `${hex(chosen.from)} to ${hex(chosen.to)}`));
        const words = code.access[code.accesses[chosen.from]];
        if (chosen.from === chosen.to && words) title.append(` ${words}`);
        if (chosen.from === chosen.to && code.file[chosen.from] >= 0) {
          title.append(" of ", place(code.file[chosen.from], code.line[chosen.from]));
          const chain = code.inlined[code.chain[chosen.from]];
          for (const [file, line, name] of chain) title.append(name ? ` in ${name}, inlined at ` : " inlined at ", place(file, line));
        }
      } else {
        const file = code.files[chosen.file];
        title.append(element("strong", "", `${file.name}:${chosen.from}${chosen.to > chosen.from ? ` to ${chosen.to}` : ""}`));
      }
      if (indices.length !== 1) title.append(` · ${indices.length} instructions`);
      const facts = element("dl", "code-facts");
      for (const heat of code.plain) {
        const value = code.of(heat, indices);
        if (!value) continue;
        const name = element("dt", "", heat.title);
        name.title = heat.tip;
        const share = heat.over || heat.most ? "" : ` (${percent(code.share(heat, value))})`;
        facts.append(name, element("dd", "", `${amount(value)}${share}`));
      }
      const waits = element("ul", "code-waits");
      const found = code.mix(indices), total = found.reduce((sum, item) => sum + item[1], 0);
      for (const [heat, value] of found.slice(0, 6)) {
        const row = element("li"), bar = element("i", `back-${heat.colour}`), name = element("span", "", heat.title);
        bar.style.width = `${100 * value / total}%`;
        name.title = heat.tip;
        row.append(name, element("span", "code-n", percent(100 * value / total, 0)), bar);
        waits.append(row);
      }
      told.replaceChildren(title, ...tree(chosen, indices), facts, ...(found.length ? [waits] : []));
    };
    // What was inlined into a line: the functions it came from, with what they cost.
    const tree = (chosen, indices) => {
      if (chosen.kind !== "line" || chosen.file === code.ptxFile || !code.samples) return [];
      const parts = new Map();
      for (const index of indices) {
        if (code.file[index] === chosen.file && code.line[index] >= chosen.from && code.line[index] <= chosen.to) continue;
        const chain = code.inlined[code.chain[index]];
        const depth = chain.findIndex(([file, line]) => file === chosen.file && line >= chosen.from && line <= chosen.to);
        const path = [[code.file[index], code.line[index], chain[0]?.[2]]];
        for (let step = 0; step < depth; step += 1) path.push([chain[step][0], chain[step][1], chain[step + 1]?.[2]]);
        let level = parts, node = null;
        for (const [file, line, name] of path.reverse()) {
          const key = `${file}:${line}`;
          node = level.get(key) ?? { file, line, name, indices: [], inside: new Map() };
          level.set(key, node);
          node.indices.push(index);
          level = node.inside;
        }
      }
      if (!parts.size) return [];
      const listed = (level) => {
        const list = element("ul", "code-tree");
        const ordered = [...level.values()].map((node) => [node, code.of(code.heat.get("samples"), node.indices)]).sort((a, b) => b[1] - a[1]);
        for (const [node, samples] of ordered.slice(0, 8)) {
          const item = element("li");
          item.append(element("span", "code-n", percent(100 * samples / code.samples)), " ");
          if (node.name) item.append(element("code", "", node.name), " ");
          item.append(node.file >= 0 ? place(node.file, node.line) : "");
          if (node.inside.size) item.append(listed(node.inside));
          list.append(item);
        }
        return list;
      };
      const box = element("div", "code-inlined");
      box.append(element("p", "muted small", "Inlined here:"), listed(parts));
      return [box];
    };

    const choose = (chosen, { scroll = true, link = true } = {}) => {
      state.chosen = chosen;
      const indices = indicesOf(chosen);
      state.linkedSass = new Set(indices);
      state.linkedLines = new Set(indices.flatMap((index) => [`${code.file[index]}:${code.line[index]}`, `${code.ownFile[index]}:${code.ownLine[index]}`, `${code.ptxFile}:${code.ptxLine[index]}`]));
      if (chosen.kind === "line") {
        // Another file's lines are shown where the reader stands in them; a line of this one is shown here.
        if (chosen.file !== state.file) { state.file = chosen.file; files.value = chosen.file; refresh(); }
        if (scroll) source.reveal(code.files[chosen.file].rowOf.get(chosen.from) ?? 0);
        // The hottest of its instructions, not the first: a line's code may lie in many places.
        const values = indices.map((index) => code.of(state.heat, alone(index)));
        if (indices.length) sass.reveal(state.order.indexOf(indices[values.indexOf(Math.max(...values))]));
      } else {
        if (scroll) sass.reveal(state.order.indexOf(chosen.from));
        if (source) {
          const index = chosen.from, here = code.file[index] === state.file;
          const [file, line] = state.file === code.ptxFile && code.ptxLine[index] ? [state.file, code.ptxLine[index]]
            : here ? [code.file[index], code.line[index]] : [code.ownFile[index], code.ownLine[index]];
          if (file >= 0) {
            if (file !== state.file) { state.file = file; files.value = file; refresh(); }
            source.reveal(code.files[file].rowOf.get(line) ?? 0);
          }
        }
      }
      redraw();
      tell();
      if (link) history.replaceState(null, "", `#${anchorOf(chosen)}`);
    };
    const anchorOf = (chosen) => chosen.kind === "line"
      ? `${prefix}${code.files[chosen.file].anchor}-${chosen.from}`
      : `${prefix}sass-${code.offsets[chosen.from].toString(16).padStart(4, "0")}`;
    const byOffset = new Map(code.offsets.map((offset, index) => [offset, index]));
    // The place that a link names, null for none of this kernel's.
    const named = (id) => {
      if (!id.startsWith(prefix)) return null;
      const rest = id.slice(prefix.length), cut = rest.lastIndexOf("-");
      const name = rest.slice(0, cut), number = rest.slice(cut + 1);
      if (name === "sass" && /^[0-9a-f]+$/.test(number)) {
        const index = byOffset.get(parseInt(number, 16));
        return index === undefined ? null : { kind: "sass", from: index, to: index };
      }
      const file = code.files.findIndex((item) => item.anchor === name);
      const line = Number(number);
      return file >= 0 && code.ofLine[file].has(line) ? { kind: "line", file, from: line, to: line } : null;
    };
    const go = (id) => {
      const chosen = named(id);
      if (!chosen) return false;
      choose(chosen, { link: false });
      panes.scrollIntoView({ block: "center", behavior: "instant" });
      return true;
    };

    const pick = (pane, event) => {
      const row = event.target.closest(".code-row");
      if (!row) return;
      const from = pane === sass ? state.order[Number(row.dataset.row)] : code.files[state.file].numbers[Number(row.dataset.row)];
      const last = state.chosen;
      const kind = pane === sass ? "sass" : "line";
      // With Shift everything from the last choice to here.
      if (event.shiftKey && last?.kind === kind && (kind === "sass" || last.file === state.file)) {
        choose({ ...last, from: Math.min(last.from, from), to: Math.max(last.to, from) }, { scroll: false });
      } else if (kind === "sass") choose({ kind, from, to: from }, { scroll: false });
      else if (code.ofLine[state.file].has(from)) choose({ kind, file: state.file, from, to: from }, { scroll: false });
    };
    for (const pane of [sass, source]) {
      pane?.box.addEventListener("click", (event) => {
        const link = event.target.closest("a");
        if (link) {
          event.preventDefault();
          const chosen = named(decoded(link.hash));
          if (chosen) choose(chosen);
          return;
        }
        if (event.shiftKey) getSelection().removeAllRanges();
        pick(pane, event);
      });
    }
    told.addEventListener("click", (event) => {
      const link = event.target.closest("a");
      const chosen = link && named(decoded(link.hash));
      if (chosen) { event.preventDefault(); choose(chosen); }
    });

    // What the reader may set.
    const panes = at("panes");
    const heats = at("heat");
    for (const heat of code.heats) {
      const option = element("option", "", heat.key.startsWith("stall:") ? `Waits: ${heat.title}` : heat.title);
      option.value = heat.key;
      option.title = heat.tip;
      option.selected = heat === state.heat;
      heats.append(option);
    }
    heats.addEventListener("change", () => { state.heat = code.heat.get(heats.value); refresh(); });
    const files = at("files");
    const shareOf = (file) => {
      const indices = new Set([...code.ofLine[file].values()].flat());
      return code.samples ? 100 * code.of(code.heat.get("samples"), indices) / code.samples : 0;
    };
    code.files.forEach((file, number) => {
      const option = element("option", "", `${file.name}${code.samples ? ` · ${percent(shareOf(number), 0)}` : ""}`);
      option.value = number;
      option.title = file.path;
      option.selected = number === state.file;
      files.append(option);
    });
    if (files) {  // code without line numbers has SASS alone
      files.hidden = code.files.length < 2;
      files.addEventListener("change", () => { state.file = Number(files.value); source.box.scrollTop = 0; refresh(); });
    }
    const sort = at("sort");
    sort.addEventListener("change", () => { state.sorted = sort.checked; sass.box.scrollTop = 0; refresh(); });
    const list = at("columns");
    for (const heat of code.plain) {
      if (heat.key === "samples") continue;
      const label = element("label"), box = element("input");
      box.type = "checkbox";
      box.value = heat.key;
      box.checked = state.columns.has(heat.key);
      label.title = heat.tip;
      label.append(box, ` ${heat.title}`);
      box.addEventListener("change", () => { state.columns[box.checked ? "add" : "delete"](heat.key); refresh(); });
      list.append(label);
    }

    // Find, over the code of all files and the SASS.
    const input = at("find"), said = at("found");
    let hits = [], hit = -1, wanted = "";
    const next = (step) => {
      const words = input.value.trim().toLowerCase();
      if (words !== wanted) {
        wanted = words;
        hit = -1;
        hits = [];
        if (words) {
          code.files.forEach((file, number) => file.code.forEach((line, row) => { if (line.toLowerCase().includes(words)) hits.push({ file: number, row }); }));
          code.sass.forEach((line, index) => { if (line.toLowerCase().includes(words)) hits.push({ index }); });
        }
      }
      state.found = null;
      said.textContent = !words ? "" : hits.length ? "" : "nowhere";
      if (hits.length) {
        hit = (hit + step + hits.length) % hits.length;
        const place = hits[hit];
        state.foundIn = place.index === undefined ? source : sass;
        if (place.index === undefined && place.file !== state.file) { state.file = place.file; files.value = place.file; refresh(); }
        const row = place.index === undefined ? place.row : state.order.indexOf(place.index);
        state.found = String(row);
        state.foundIn.reveal(row);
        said.textContent = `${hit + 1} of ${hits.length}`;
      }
      redraw();
    };
    input.addEventListener("keydown", (event) => {
      if (event.key === "Enter") { event.preventDefault(); next(event.shiftKey ? -1 : 1); }
    });
    at("next").addEventListener("click", () => next(1));

    // Keys, within the code.
    const hottest = (kind) => {
      const scores = kind === "sass"
        ? code.sass.map((_, index) => [index, code.of(state.heat, alone(index))])
        : [...code.ofLine[state.file]].map(([line, indices]) => [line, code.of(state.heat, indices)]);
      return scores.filter((item) => item[1]).sort((a, b) => b[1] - a[1]).map((item) => item[0]);
    };
    const move = (step) => {
      const chosen = state.chosen;
      if (chosen?.kind === "sass" || !source) {
        const row = Math.max(0, Math.min(code.sass.length - 1, (chosen ? state.order.indexOf(chosen.from) : -1) + step));
        choose({ kind: "sass", from: state.order[row], to: state.order[row] });
        return;
      }
      const lines = [...code.ofLine[state.file].keys()].sort((a, b) => a - b);
      const place = Math.max(0, Math.min(lines.length - 1, (chosen ? lines.indexOf(chosen.from) : -1) + step));
      choose({ kind: "line", file: state.file, from: lines[place], to: lines[place] });
    };
    const hop = (step) => {
      const kind = state.chosen?.kind === "sass" || !source ? "sass" : "line", ranked = hottest(kind);
      if (!ranked.length) return;
      const place = state.chosen ? ranked.indexOf(state.chosen.from) : -1;
      const to = ranked[(place + step + ranked.length) % ranked.length];
      choose(kind === "sass" ? { kind, from: to, to } : { kind, file: state.file, from: to, to });
    };
    const cross = () => {
      const chosen = state.chosen;
      if (!chosen || !source) return;
      const index = indicesOf(chosen)[0];
      if (chosen.kind === "line") { if (index !== undefined) { choose({ kind: "sass", from: index, to: index }); sass.box.focus({ preventScroll: true }); } }
      else if (code.ownFile[index] >= 0) { choose({ kind: "line", file: code.ownFile[index], from: code.ownLine[index], to: code.ownLine[index] }); source.box.focus({ preventScroll: true }); }
    };
    const help = at("help");
    const toggleHelp = () => { help.hidden = !help.hidden; };
    at("keys").addEventListener("click", toggleHelp);
    const keys = {
      j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1), n: () => hop(1), p: () => hop(-1), Enter: cross,
      h: () => { heats.selectedIndex = (heats.selectedIndex + 1) % heats.length; heats.dispatchEvent(new Event("change")); },
      g: () => { const target = state.chosen?.kind === "sass" ? code.target.get(state.chosen.from) : undefined; if (target !== undefined) choose({ kind: "sass", from: target, to: target }); },
      f: () => { if (code.files.length > 1) { files.selectedIndex = (files.selectedIndex + 1) % files.length; files.dispatchEvent(new Event("change")); } },
      s: () => { sort.checked = !sort.checked; sort.dispatchEvent(new Event("change")); },
      "/": () => input.focus(), "?": toggleHelp, Escape: () => { help.hidden = true; },
    };
    root.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
      if (event.key === "Enter" && event.target.tagName !== "DIV") return;
      const act = keys[event.key];
      if (act) { event.preventDefault(); act(); }
    });

    refresh();
    // It opens at the hottest line, without leaving the place where the page is.
    const ranked = hottest(source ? "line" : "sass");
    if (ranked.length) choose(source ? { kind: "line", file: state.file, from: ranked[0], to: ranked[0] } : { kind: "sass", from: ranked[0], to: ranked[0] }, { link: false });
    root.gpGo = go;
    root.gpNamed = named;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { sass.paint(); source?.paint(); });
    document.querySelector("[data-theme-toggle]")?.addEventListener("click", () => requestAnimationFrame(() => { sass.paint(); source?.paint(); }));
    new ResizeObserver(() => { sass.paint(); source?.paint(); }).observe(panes);
  };

  const followed = (id) => [...document.querySelectorAll("[data-code-area]")].some((root) => root.closest(".page")?.hidden !== true && start(root).gpGo?.(id));
  const start = (root) => {
    // Of several kernels in one file each is drawn when it is first seen.
    if (root.dataset.drawn) return root;
    root.dataset.drawn = "true";
    area(root);
    // The tables are for paper from here on: thousands of rows would only slow the page down.
    const tables = root.nextElementSibling, kept = [...tables.childNodes];
    tables.replaceChildren();
    addEventListener("beforeprint", () => tables.replaceChildren(...kept));
    addEventListener("afterprint", () => tables.replaceChildren());
    return root;
  };
  addEventListener("DOMContentLoaded", () => {
    const areas = [...document.querySelectorAll("[data-code-area]")];
    const seen = new IntersectionObserver((entries) => {
      for (const entry of entries) if (entry.isIntersecting) { start(entry.target); seen.unobserve(entry.target); }
    }, { rootMargin: "300px" });
    if (areas.length === 1) start(areas[0]);
    else for (const root of areas) seen.observe(root);
    addEventListener("hashchange", () => followed(decoded(location.hash)));
    document.addEventListener("click", (event) => {
      const link = event.target.closest("a[href^='#']");
      if (!link || link.closest("[data-code-area]") || !link.hash) return;
      if (followed(decoded(link.hash))) { event.preventDefault(); history.replaceState(null, "", link.hash); }
    });
    if (location.hash) followed(decoded(location.hash));
  });
})();
