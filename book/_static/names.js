// What the theme, docutils and printed output leave out: names and roles for screen readers, places to break or not.
document.addEventListener("DOMContentLoaded", () => {
  // A number stays with its error where printed output wraps.
  for (const printed of document.querySelectorAll(".cell_output pre")) {
    for (const node of printed.childNodes) {
      if (node.nodeType === Node.TEXT_NODE) node.data = node.data.replace(/ ± /g, "\u00a0±\u00a0");
    }
  }
  // A long line of code breaks after a comma or an opening bracket.
  for (const mark of document.querySelectorAll(".highlight pre .p")) {
    if (/[,(]$/.test(mark.textContent)) mark.after(document.createElement("wbr"));
  }
  // A picture has the size in which it was drawn, at 144 dots per inch, so that its text is no larger than the
  // page's. Pictures of several panels are too wide for a phone (book.css).
  for (const picture of document.querySelectorAll(".bd-article .cell_output img")) {
    const fit = () => {
      picture.style.width = `${picture.naturalWidth / 1.5}px`;
      picture.parentElement.classList.toggle("wide", picture.naturalWidth > 880);
    };
    if (!picture.closest(".slider")) picture.complete ? fit() : picture.addEventListener("load", fit);
  }
  // On a phone a row of a wide table is a card, each number beside the name of its column (book.css).
  for (const table of document.querySelectorAll(".bd-article :is(.cell_output, .errata) table")) {
    const names = [...table.querySelectorAll("thead tr:last-child th")].map((one) => one.textContent);
    if (names.length < (table.closest(".errata") ? 4 : 6)) continue;
    table.classList.add("cards");
    for (const row of table.querySelectorAll("tbody tr")) {
      [...row.cells].forEach((cell, i) => { cell.dataset.name = names[i]; });
    }
  }
  // What scrolls can be scrolled by keyboard; at another size other things do.
  const scrolled = document.querySelectorAll(".bd-article :is(figure, .cell_output, .text_html, .pst-scrollable-table-container)");
  const sizes = new ResizeObserver(() => {
    for (const box of scrolled) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  });
  scrolled.forEach((box) => sizes.observe(box));
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
