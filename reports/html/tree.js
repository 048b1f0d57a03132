// The tree of modules unfolds without a script; this adds folding all of it, and the way from a module to its tensors.

for (const button of document.querySelectorAll("[data-tree]")) {
  button.addEventListener("click", () => {
    for (const item of document.querySelectorAll(".tree details")) {
      const inside = [...item.querySelectorAll(":scope > ul > li")].some((li) => Number(li.dataset.faults) > 0);
      item.open = { all: true, none: item === document.querySelector(".tree details"), faults: inside || item === document.querySelector(".tree details") }[button.dataset.tree];
    }
  });
}
for (const button of document.querySelectorAll(".tree .show")) {
  button.addEventListener("click", () => {
    setFilter(button.dataset.name);
    chooseStage(null);
    byId("tensors").scrollIntoView();
    byId("filter").focus({ preventScroll: true });
  });
}
addEventListener("beforeprint", () => {
  for (const item of document.querySelectorAll("details.recipe")) item.open = true;
});
for (const code of document.querySelectorAll("pre.fix")) {
  const button = make("button", { type: "button", class: "link copy" }, "copy");
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent);
    } catch { // a browser that asks for more than a click
      getSelection().selectAllChildren(code);
      document.execCommand("copy");
    }
    button.textContent = "copied";
  });
  code.after(button);
}
