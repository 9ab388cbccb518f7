"use strict";
// The page is complete without this: it filters the contents, copies commands, and marks where the reader is.
const filter = document.getElementById("filter");
const links = [...document.querySelectorAll("nav li a")];
filter.parentElement.hidden = false;
filter.addEventListener("input", () => {
  const words = filter.value.toLowerCase().split(/\s+/);
  for (const link of links) {
    const text = (link.textContent + " " + link.title).toLowerCase();
    link.parentElement.hidden = !words.every((word) => text.includes(word));
  }
  for (const list of document.querySelectorAll("nav ul")) {
    list.previousElementSibling.hidden = !list.querySelector("li:not([hidden])");
  }
});
filter.addEventListener("keydown", (event) => {
  const found = links.find((link) => !link.parentElement.hidden);
  if (event.key === "Enter" && found) {
    location.hash = found.hash;
    document.querySelector(found.hash + " .link").focus();
  } else if (event.key === "Escape") {
    filter.value = "";
    filter.dispatchEvent(new Event("input"));
  }
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && event.target !== filter && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    filter.focus();
  }
});
if (navigator.clipboard) {
  for (const block of document.querySelectorAll("pre")) {
    const button = document.createElement("button");
    button.className = "copy";
    button.type = "button";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.querySelector("code").textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.append(button);
  }
}
const mark = () => {
  for (const link of links) {
    if (link.hash === location.hash) link.setAttribute("aria-current", "location");
    else link.removeAttribute("aria-current");
  }
};
addEventListener("hashchange", mark);
mark();
