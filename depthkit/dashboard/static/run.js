// The page of a run: turns and terminal in step, matches one after another, long outputs whole.
"use strict";
(() => {
  const turns = Array.from(document.querySelectorAll(".turn"));
  const box = document.querySelector(".player");
  const now = document.querySelector(".player .now");
  let current = -1;
  let player = null;

  const query = new URLSearchParams(location.search);
  function remember(index) {
    const id = turns[index]?.id;
    if (!id || location.hash === `#${id}`) return;
    try { history.replaceState(null, "", `#${id}`); } catch { /* From disk, in some browsers. */ }
  }
  function show(index, { seek = false, scroll = true } = {}) {
    if (index < 0 || index >= turns.length) return;
    if (index !== current) {
      turns[current]?.classList.remove("now");
      turns[current]?.removeAttribute("aria-current");
      current = index;
      turns[index].classList.add("now");
      turns[index].setAttribute("aria-current", "true");
      document.querySelectorAll(".turn-now").forEach((mark) => {
        mark.setAttribute("x", String(index * Number(mark.dataset.step)));
      });
      remember(index);
    }
    if (scroll) turns[index].scrollIntoView({ block: "start" });
    if (now) now.textContent = `turn ${index + 1} of ${turns.length}`;
    const at = turns[index].dataset.at;
    if (seek && player && at !== undefined) player.seek(Number(at));
  }

  // Playback
  const starts = turns.map((turn) => turn.dataset.at === undefined ? null : Number(turn.dataset.at));
  function turnAt(seconds) {
    let found = -1;
    starts.forEach((start, index) => { if (start !== null && start <= seconds + 0.02) found = index; });
    return found;
  }
  if (box && window.AsciinemaPlayer) {
    const inline = window.depthkitRecordings?.[box.dataset.run];
    const source = inline === undefined ? box.dataset.source : { data: inline };
    player = AsciinemaPlayer.create(source, box.querySelector(".screen"), {
      fit: "width", preload: true, idleTimeLimit: undefined, controls: true, theme: "asciinema",
      markers: JSON.parse(box.dataset.markers), terminalFontFamily: "ui-monospace, Menlo, Consolas, monospace",
      logger: undefined,
    });
    window.depthkitPlayer = player;
    let playing = false;
    let last = null;
    player.addEventListener("playing", () => { playing = true; });
    player.addEventListener("pause", () => { playing = false; });
    player.addEventListener("ended", () => { playing = false; });
    // Also when somebody drags the player's own bar.
    setInterval(async () => {
      const time = await player.getCurrentTime();
      if (typeof time !== "number" || time === last) return;
      const first = last === null;
      last = time;
      const index = turnAt(time);
      if (index >= 0 && index !== current && !first) show(index, { scroll: playing || !seeking });
      seeking = false;
    }, 120);
    document.querySelectorAll(".seek").forEach((button) => button.addEventListener("click", () => {
      const index = turns.indexOf(button.closest(".turn"));
      show(index, { seek: true, scroll: false });
      player.play();
    }));
  }
  let seeking = false;

  // Matches
  let match = -1;
  function nextMatch(by) {
    const all = Array.from(document.querySelectorAll(".turns mark, .verifier mark"));
    if (!all.length) return false;
    all[match]?.classList.remove("now");
    match = (match + by + all.length) % all.length;
    all[match].closest("details")?.setAttribute("open", "");
    all[match].classList.add("now");
    all[match].scrollIntoView({ block: "center" });
    const turn = turns.indexOf(all[match].closest(".turn"));
    if (turn >= 0) show(turn, { scroll: false });
    if (now) now.textContent = `match ${match + 1} of ${all.length}`;
    return true;
  }

  window.depthkitKey = (event) => {
    const key = event.key;
    if (key === "j" || key === "k") {
      seeking = true;
      show(Math.max(0, Math.min(turns.length - 1, current + (key === "j" ? 1 : -1))), { seek: true });
      return turns.length > 0;
    }
    if ((key === "n" || key === "p") && query.get("q")) return nextMatch(key === "n" ? 1 : -1);
    if (key === " " && player && !(event.target instanceof HTMLButtonElement) &&
        !event.target.closest?.("summary, a, .player")) {
      if (current < 0) show(0, { scroll: false });
      player.getCurrentTime && (window.depthkitPlays = !window.depthkitPlays);
      window.depthkitPlays ? player.play() : player.pause();
      return true;
    }
    return false;
  };

  // The turn of the address, also when it changes.
  function fromAddress(seek) {
    const index = turns.findIndex((turn) => `#${turn.id}` === location.hash);
    if (index >= 0) show(index, { seek });
  }
  document.querySelectorAll('a[href^="#turn-"]').forEach((link) => link.addEventListener("click", (event) => {
    const index = turns.findIndex((turn) => `#${turn.id}` === link.getAttribute("href"));
    if (index < 0) return;
    event.preventDefault();
    try { history.pushState(null, "", link.getAttribute("href")); } catch { /* As above. */ }
    show(index, { seek: true });
  }));
  window.addEventListener("hashchange", () => fromAddress(true));
  window.addEventListener("popstate", () => fromAddress(true));
  if (location.hash) setTimeout(() => fromAddress(true), 0);
  else if (query.get("q")) nextMatch(1);

  // Long outputs
  document.querySelectorAll("a.whole").forEach((link) => link.addEventListener("click", async (event) => {
    event.preventDefault();
    const answer = await fetch(link.href);
    if (!answer.ok) return;
    const part = new DOMParser().parseFromString(await answer.text(), "text/html");
    const pre = part.querySelector("pre");
    const more = link.closest(".more");
    more.previousElementSibling.replaceWith(pre);
    more.remove();
  }));
})();
