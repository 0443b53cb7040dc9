// Keyboard, live lists and parts that come later, on every page. Text is only ever put in as text,
// or as HTML that the server has escaped.
"use strict";
(() => {
  const body = document.body;
  const home = body.dataset.home;
  const help = document.getElementById("help");
  const typing = (target) => target instanceof HTMLElement &&
    (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

  document.querySelector(".help-button")?.addEventListener("click", () => help.showModal());

  // Rows of a list: a place that j and k move.
  let at = -1;
  const rows = () => Array.from(document.querySelectorAll("a.row")).filter((a) => a.offsetParent);
  function move(by) {
    const all = rows();
    if (!all.length) return;
    at = Math.max(0, Math.min(all.length - 1, at + by));
    document.querySelectorAll("tr.at").forEach((row) => row.classList.remove("at"));
    all[at].closest("tr")?.classList.add("at");
    all[at].focus({ preventScroll: true });
    all[at].scrollIntoView({ block: "nearest" });
  }

  const places = { o: "overview", t: "tasks", r: "runs", s: "search", c: "compare", p: "reports" };
  let going = 0;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && typing(event.target)) { event.target.blur(); return; }
    if (typing(event.target) || help.open) return;
    const key = event.key;
    if (Date.now() - going < 1500 && places[key]) {
      going = 0;
      const link = document.querySelector(`.top nav a[href*="${places[key]}"]`);
      if (link) { event.preventDefault(); location.href = link.href; }
      return;
    }
    going = 0;
    if (key === "g") { going = Date.now(); return; }
    if (key === "?") { event.preventDefault(); help.showModal(); return; }
    if (key === "/") {
      const field = document.getElementById("q");
      if (field) {
        event.preventDefault();
        field.closest("details")?.setAttribute("open", "");
        field.focus(); field.select();
      } else if (home) { location.href = `${home}search`; }
      return;
    }
    if (window.depthkitKey?.(event)) { event.preventDefault(); return; }
    if (key === "j") { event.preventDefault(); move(1); }
    else if (key === "k") { event.preventDefault(); move(-1); }
    else if (key === "n" || key === "p") {
      const link = document.querySelector(`a[rel=${key === "n" ? "next" : "prev"}]`);
      if (link) { event.preventDefault(); location.href = link.href; }
    }
  });

  // A list on a phone starts with its filters closed.
  if (window.matchMedia("(max-width: 820px)").matches) {
    document.querySelector(".filters")?.removeAttribute("open");
  }

  // A static list is sieved here.
  const sieve = document.querySelector("[data-sieve]");
  sieve?.addEventListener("input", () => {
    const wanted = sieve.value.toLowerCase();
    document.querySelectorAll("tbody tr").forEach((row) => {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
    });
  });

  // Select with an empty value is no filter: keep addresses short.
  document.querySelectorAll("form").forEach((form) => form.addEventListener("submit", () => {
    for (const field of form.elements) {
      if (field.name && field.value === "" && form.method === "get") field.disabled = true;
    }
    setTimeout(() => { for (const field of form.elements) field.disabled = false; }, 0);
  }));

  // Following a corpus while it grows: ask whether it changed, then replace the list; now and then
  // also without, as somebody may have begun to measure. Focus and scrolling stay where they are.
  function replaceList(list, part) {
    const place = list.contains(document.activeElement) ? document.activeElement : null;
    const target = place?.getAttribute("href");
    const left = list.querySelector(".scroll")?.scrollLeft ?? 0;
    list.replaceChildren(...part.childNodes);
    const box = list.querySelector(".scroll");
    if (box) box.scrollLeft = left;
    const again = target && Array.from(list.querySelectorAll("a")).find((a) => a.getAttribute("href") === target);
    if (!again) return;
    again.focus({ preventScroll: true });
    if (again.matches("a.row")) { at = rows().indexOf(again); again.closest("tr").classList.add("at"); }
  }
  async function follow(list) {
    let seen = list.dataset.digest;
    for (let round = 1; ; round += 1) {
      try {
        const state = await (await fetch(`${home}data/state`)).json();
        if (state.digest !== seen || list.querySelector("[data-measuring]") || round % 4 === 0) {
          const text = await (await fetch(location.href)).text();
          const fresh = new DOMParser().parseFromString(text, "text/html");
          const part = fresh.getElementById(list.id);
          if (part) replaceList(list, part);
          const line = fresh.querySelector(".provenance");
          if (line) document.querySelector(".provenance").replaceWith(line);
        }
        seen = state.digest;
      } catch { /* The server is away; it may come back. */ }
      await new Promise((done) => setTimeout(done, 1500));
    }
  }
  const list = document.getElementById("list");
  if (list?.dataset.live === "1") {
    follow(list);
    // Another filter, order or page of the list is followed too.
    document.addEventListener("click", (event) => {
      const link = event.target.closest?.(".filters a, .chosen a, thead a, .pager a");
      if (link && !link.href.includes("live=")) link.href += `${link.search ? "&" : "?"}live=1`;
    }, true);
  }

  // A page that was asked for before the corpus was read comes again when it is.
  if (document.querySelector("[data-reading]")) {
    const again = setInterval(async () => {
      try {
        const state = await (await fetch(`${home}data/state`)).json();
        if (state.read) { clearInterval(again); location.reload(); }
      } catch { /* As above. */ }
    }, 400);
  }

  // A report that is being made.
  const progress = document.querySelector("[data-progress]");
  if (progress) {
    const again = setInterval(async () => {
      try {
        const job = await (await fetch(progress.dataset.progress)).json();
        progress.querySelector("pre").textContent = job.lines.join("\n");
        if (job.cells) [progress.firstChild.value, progress.firstChild.max] = job.cells;
        if (job.status !== null) { clearInterval(again); location.reload(); }
      } catch { /* As above. */ }
    }, 700);
  }

  // Parts that take the server a while; very long ones only when asked for.
  document.querySelectorAll("[data-claims]").forEach(async (place) => {
    const ask = place.querySelector("button");
    if (ask) {
      await new Promise((done) => ask.addEventListener("click", done, { once: true }));
      place.textContent = "Comparing …";
    }
    try {
      const answer = await fetch(place.dataset.claims);
      const part = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (answer.ok) place.replaceWith(...part.body.childNodes);
      else place.textContent = "The comparison could not be made.";
    } catch { place.textContent = "The comparison could not be made."; }
  });
})();
