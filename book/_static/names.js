// Names and roles for screen readers that the theme and docutils leave out.
document.addEventListener("DOMContentLoaded", () => {
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
