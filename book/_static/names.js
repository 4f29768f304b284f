// What the theme and docutils leave unsaid to a screen reader.
document.addEventListener("DOMContentLoaded", () => {
  // Of which page the arrow in the list of pages folds out the sections.
  for (const arrow of document.querySelectorAll(".has-children > details > summary")) {
    const page = arrow.closest("li").querySelector("a").textContent.trim();
    arrow.setAttribute("aria-label", `Pages of ${page}`);
  }
  // The works of a list are its items; the role that they have is one that ARIA has given up.
  for (const work of document.querySelectorAll("[role=doc-biblioentry]")) {
    work.setAttribute("role", "listitem");
  }
});
