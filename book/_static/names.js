// What the theme, docutils and printed output leave out: names and roles for screen readers, spaces that do not break.
document.addEventListener("DOMContentLoaded", () => {
  // A number stays with its error where printed output wraps.
  for (const printed of document.querySelectorAll(".cell_output pre")) {
    for (const node of printed.childNodes) {
      if (node.nodeType === Node.TEXT_NODE) node.data = node.data.replace(/ ± /g, "\u00a0±\u00a0");
    }
  }
  // An arrow in the list of pages says whose sections it folds out.
  for (const arrow of document.querySelectorAll(".has-children > details > summary")) {
    const page = arrow.closest("li").querySelector("a").textContent.trim();
    arrow.setAttribute("aria-label", `Pages of ${page}`);
  }
  // The works of the bibliography are items of a list; ARIA has deprecated the role that docutils gives them.
  for (const work of document.querySelectorAll("[role=doc-biblioentry]")) {
    work.setAttribute("role", "listitem");
  }
});
