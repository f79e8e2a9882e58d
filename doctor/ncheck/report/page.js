"use strict";
// Search and copy. The page is whole without it: what needs this script is hidden until it runs.
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const tools = document.querySelector(".tools");
  const search = tools.querySelector("input");
  const count = tools.querySelector("output");
  const kinds = all(".tools button");
  const items = all("[data-find]");
  const texts = new Map(items.map((item) => [item, item.textContent.toLowerCase()]));
  const groups = all("[data-group]");

  const filter = () => {
    const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    const off = new Set(kinds.filter((one) => one.getAttribute("aria-pressed") !== "true").map((one) => one.value));
    let shown = 0;
    for (const item of items) {
      item.hidden = off.has(item.dataset.find) || !words.every((word) => texts.get(item).includes(word));
      shown += item.hidden ? 0 : 1;
    }
    for (const group of groups) {
      const inside = [...group.querySelectorAll("[data-find]")];
      group.hidden = inside.length > 0 && inside.every((item) => item.hidden);
    }
    if (words.length) {
      for (const details of all("details")) {
        details.open ||= [...details.querySelectorAll("[data-find]")].some((item) => !item.hidden);
      }
    }
    count.textContent = words.length || off.size ? `{{ tr('{number} of {total}', number='${shown}', total='${items.length}') }}` : "";
  };
  search.addEventListener("input", filter);
  for (const kind of kinds) {
    kind.addEventListener("click", () => {
      kind.setAttribute("aria-pressed", kind.getAttribute("aria-pressed") === "true" ? "false" : "true");
      filter();
    });
  }
  tools.hidden = false;

  const copied = async (block) => {
    try {
      await navigator.clipboard.writeText(block.textContent);
      return true;
    } catch { // a page over plain http has no clipboard
      getSelection().selectAllChildren(block);
      return document.execCommand("copy");
    }
  };
  for (const block of all("pre:not(.page pre)")) {
    const unusable = block.closest("[data-unusable]");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    const name = unusable ? unusable.dataset.unusable : "{{ tr('copy') }}";
    button.textContent = name;
    button.disabled = Boolean(unusable);
    button.addEventListener("click", async () => {
      button.textContent = (await copied(block)) ? "{{ tr('copied') }}" : "{{ tr('select and copy') }}";
      setTimeout(() => { button.textContent = name; }, 2000);
    });
    block.before(button);
  }
})();
