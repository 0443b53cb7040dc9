// The overview: one brush over plane and histograms, and labels and notes that narrow it. It is kept
// in the address, filters the table below and colours what is chosen; everything happens here, on
// the tasks that came with the plots.
"use strict";
(() => {
  const box = document.getElementById("plots");
  const form = document.getElementById("brush");
  if (!box || !form || !window.Bokeh) return;
  const keys = ["D", "N", "W"];
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const MOST = 25;
  let plots = null;

  function themed(json) {
    const colours = {
      "#010101": css("--ink"), "#020202": css("--rule"), "#030303": css("--surface"),
      "#040404": css("--bar"), "#050505": css("--chosen"),
    };
    return JSON.parse(json.replace(/#0[1-5]0[1-5]0[1-5]/g, (found) => colours[found] ?? found));
  }

  async function draw(json) {
    for (const name of ["plane", ...keys]) document.getElementById(`plot-${name}`).replaceChildren();
    const data = themed(json);
    const views = {};
    for (const [name, item] of Object.entries(data.items)) {
      const target = document.getElementById(`plot-${name}`);
      const [view] = Object.values(await Bokeh.embed.embed_item({ ...item, target_id: target.id }));
      views[name] = view ?? null;
    }
    const models = {};
    for (const doc of Bokeh.documents) {
      for (const root of doc.roots()) if (root.name) models[root.name] = root;
    }
    const marks = models.plane.renderers.find((r) => r.name === "marks");
    plots = { data, models, marks, source: marks.data_source, bins: {} };
    for (const key of keys) {
      const renderer = models[`bars-${key}`].renderers.find((r) => r.name === "chosen");
      plots.bins[key] = renderer.data_source;
      models[`bars-${key}`].on_event?.("selectiongeometry", (event) => brushed(key, event));
    }
    models.plane.on_event?.("selectiongeometry", (event) => brushed("plane", event));
    document.getElementById("left-out").append(
      data.left_out ? ` ${data.left_out.toLocaleString("en")} tasks have no W or no D yet and no mark.` : "");
    colour();
    apply(false);
  }

  const column = (name) => Array.from(plots.source.data[name]);
  const bound = (name) => {
    const text = form.elements[name].value.trim();
    const number = Number(text.replace(">", ""));
    return text === "" || Number.isNaN(number) ? null : number;
  };
  const ranges = () => Object.fromEntries(
    keys.map((key) => [key, [bound(`${key}_min`), bound(`${key}_max`)]]));

  // Labels and notes; a form has fields for them only where the corpus has some.
  const names = ["label", "note"];
  const asked = (name) => form.elements[name]?.value.trim() ?? "";
  function marked() {
    const [label, note] = [asked("label"), asked("note").toLowerCase()];
    if (!label && !note) return null;
    return (i) => {
      const { labels, notes } = plots.data.marks[i] ?? { labels: [], notes: [] };
      return (!label || labels.includes(label)) &&
        (!note || (note === "*" ? notes.length > 0 : notes.some((text) => text.includes(note))));
    };
  }

  function brushed(where, event) {
    if (event.final === false) return;
    const geometry = event.geometry;
    if (geometry?.type === "point") { clicked(); return; }
    if (geometry?.type !== "rect") return;
    const put = (key, low, high) => {
      form.elements[`${key}_min`].value = low ?? "";
      form.elements[`${key}_max`].value = high ?? "";
    };
    const depths = (from, to) => {
      const scale = [...plots.data.caps, plots.data.above];
      const inside = scale.filter((_, place) => place >= from - 0.3 && place <= to + 0.3);
      return inside.length ? [inside[0], inside[inside.length - 1]] : [plots.data.above + 1, null];
    };
    const [x0, x1] = [Math.min(geometry.x0, geometry.x1), Math.max(geometry.x0, geometry.x1)];
    if (where === "plane") {
      const [y0, y1] = [Math.min(geometry.y0, geometry.y1), Math.max(geometry.y0, geometry.y1)];
      put("W", Math.max(0, Math.ceil(x0)), Math.floor(x1));
      put("D", ...depths(y0, y1));
    } else if (where === "D") put("D", ...depths(x0, x1));
    else put(where, Math.max(0, Math.ceil(x0)), Math.floor(x1));
    apply(true);
  }

  // A click opens a mark; a drag around a single one chooses it.
  function clicked() {
    const { inspected, selected, data } = plots.source;
    const under = inspected.indices.length ? inspected.indices : selected.indices;
    if (under.length) location.href = data.href[under[0]];
    else apply(false);
  }

  function mask() {
    const wanted = ranges();
    const columns = Object.fromEntries(keys.map((key) => [key, column(key)]));
    const has = marked();
    const any = has !== null || keys.some((key) => wanted[key].some((end) => end !== null));
    const chosen = [];
    for (let i = 0; i < columns.W.length; i++) {
      const fits = keys.every((key) => {
        const [low, high] = wanted[key];
        if (low === null && high === null) return true;
        const value = columns[key][i];
        if (value === null || Number.isNaN(value)) return false;
        return (low === null || value >= low) && (high === null || value <= high);
      });
      if (fits && (has === null || has(i))) chosen.push(i);
    }
    return { chosen, any };
  }

  function counts(key, chosen) {
    const edges = plots.data.edges[key];
    const values = column(key === "D" ? "place" : key);
    const depth = column("D");
    const found = new Array(edges.length - 1).fill(0);
    for (const i of chosen) {
      const value = values[i];
      if (value === null || Number.isNaN(value) || (key === "D" && depth[i] === null)) continue;
      let low = 0, high = edges.length - 1;
      while (high - low > 1) { const middle = (low + high) >> 1; if (edges[middle] <= value) low = middle; else high = middle; }
      if (value >= edges[0] && value <= edges[edges.length - 1]) found[low] += 1;
    }
    return found;
  }

  function apply(remember) {
    if (!plots) return;
    const { chosen, any } = mask();
    plots.source.selected.indices = any ? chosen : [];
    for (const key of keys) {
      plots.bins[key].data = { ...plots.bins[key].data, chosen: counts(key, chosen) };
      plots.bins[key].selected.indices = [];
    }
    table(chosen);
    const total = column("W").length;
    const all = `${total.toLocaleString("en")} task${total === 1 ? "" : "s"}`;
    document.getElementById("chosen").textContent = any
      ? `${chosen.length.toLocaleString("en")} of ${all} chosen` : all;
    const query = new URLSearchParams();
    for (const key of keys) for (const end of ["min", "max"]) {
      const value = bound(`${key}_${end}`);
      if (value !== null) query.set(`${key}_${end}`, String(value));
    }
    for (const name of names) if (asked(name)) query.set(name, asked(name));
    const tasks = document.getElementById("open-tasks");
    if (!window.depthkitPlots) tasks.href = `${tasks.href.split("?")[0]}${query.size ? "?" : ""}${query}`;
    if (form.elements.colour.value !== "dataset") query.set("colour", form.elements.colour.value);
    const address = `${location.pathname}${query.size ? "?" : ""}${query}`;
    if (remember && address !== location.pathname + location.search) {
      try { history.pushState(null, "", address); } catch { /* From disk, in some browsers. */ }
    }
    document.body.dataset.chosen = String(chosen.length);
  }

  function table(chosen) {
    const body = document.querySelector("#chosen-tasks tbody");
    const data = plots.source.data;
    const order = chosen.slice().sort((a, b) => (data.D[b] ?? -1) - (data.D[a] ?? -1) || data.W[b] - data.W[a]);
    const rows = order.slice(0, MOST).map((i) => {
      const row = document.createElement("tr");
      const cell = (text, right) => {
        const made = document.createElement("td");
        if (right) made.className = "n";
        made.textContent = text;
        row.append(made);
        return made;
      };
      const link = document.createElement("a");
      link.className = "row";
      link.href = data.href[i];
      link.textContent = data.task[i];
      cell("", false).append(link);
      cell(data.dataset[i], false);
      cell(data.said[i], true);
      cell(data.N[i]?.toLocaleString("en") ?? "–", true);
      cell(data.W[i].toLocaleString("en"), true);
      cell(data.rate[i] === null || Number.isNaN(data.rate[i]) ? "–" : `${Math.round(100 * data.rate[i])}%`, true);
      return row;
    });
    if (order.length > MOST) {
      const row = document.createElement("tr");
      const cell = document.createElement("td");
      cell.colSpan = 6;
      const link = document.createElement("a");
      link.href = document.getElementById("open-tasks").href;
      link.textContent = `and ${(order.length - MOST).toLocaleString("en")} more: open in Tasks`;
      cell.append(link);
      row.append(cell);
      rows.push(row);
    }
    body.replaceChildren(...rows);
  }

  const LEGENDS = {
    outcome: [["solved", "#0072B2"], ["not solved", "#E69F00"]],
    rate: [["0%", "#b2543b"], ["20%", "#d08a5c"], ["40%", "#d9b98a"], ["60%", "#9fb8c4"], ["80%", "#5f9bc4"], ["100%", "#1f77b4"]],
  };
  function colour() {
    const by = form.elements.colour.value;
    for (const glyph of [plots.marks.glyph, plots.marks.nonselection_glyph, plots.marks.selection_glyph]) {
      if (glyph && typeof glyph === "object") glyph.fill_color = { field: `by_${by}` };
    }
    const legend = document.getElementById("legend");
    const pairs = LEGENDS[by] ?? [...new Map(column("dataset").map((name, i) => [name, plots.source.data.by_dataset[i]]))];
    legend.replaceChildren(...pairs.map(([name, value]) => {
      const item = document.createElement("li");
      const key = document.createElement("span");
      key.className = "key";
      key.style.background = value;
      item.append(key, name);
      return item;
    }));
  }

  form.addEventListener("submit", (event) => { event.preventDefault(); apply(true); });
  form.addEventListener("reset", (event) => {
    event.preventDefault();
    for (const key of keys) for (const end of ["min", "max"]) form.elements[`${key}_${end}`].value = "";
    for (const name of names) if (form.elements[name]) form.elements[name].value = "";
    apply(true);
  });
  form.elements.colour.addEventListener("change", () => { colour(); apply(true); });
  form.elements.label?.addEventListener("change", () => apply(true));
  window.addEventListener("popstate", () => {
    const query = new URLSearchParams(location.search);
    for (const key of keys) for (const end of ["min", "max"]) form.elements[`${key}_${end}`].value = query.get(`${key}_${end}`) ?? "";
    for (const name of names) if (form.elements[name]) form.elements[name].value = query.get(name) ?? "";
    form.elements.colour.value = query.get("colour") ?? "dataset";
    if (plots) { colour(); apply(false); }
  });

  (async () => {
    const json = window.depthkitPlots ?? await (await fetch(box.dataset.source)).text();
    await draw(json);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => location.reload());
  })();
})();
