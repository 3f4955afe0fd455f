// Filters, sorts and searches the findings of a report, and copies commands. The page is complete without it: this
// only unhides the controls.
(function () {
  "use strict";
  var list = function (query) { return Array.prototype.slice.call(document.querySelectorAll(query)); };

  function unfold() { // what a link leads to is opened
    var at = document.querySelector(":target");
    for (var e = at; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    if (!at) return;
    var own = at.closest("summary") ? at.closest("details") : at.querySelector("details:not(.raw)");
    if (own) own.open = true;
    at.scrollIntoView();
  }
  window.addEventListener("hashchange", unfold);
  unfold();

  if (navigator.clipboard) list("button.copy").forEach(function (button) {
    button.hidden = false;
    button.addEventListener("click", function () {
      navigator.clipboard.writeText(button.getAttribute("data-copy")).then(function () {
        button.textContent = "Copied";
        setTimeout(function () { button.textContent = "Copy"; }, 1500);
      });
    });
  });

  var bar = document.getElementById("filter");
  var items = list("[data-finding]");
  if (!bar || !items.length) return;
  var text = document.getElementById("filter-text");
  var count = document.getElementById("filter-count");
  var sort = document.getElementById("sort");
  var selects = Array.prototype.slice.call(bar.querySelectorAll("select[name]"));
  var groups = list(".chunk, details.rest").reverse();
  var cards = list("article.card");
  var contents = null; // what is searched, read when it is first needed
  var waiting = 0;

  function read() {
    contents = items.map(function (item) {
      return item.textContent.toLowerCase();
    });
  }

  function wanted(item, i, words) {
    return (
      selects.every(function (select) {
        return !select.value || item.getAttribute("data-" + select.name) === select.value;
      }) &&
      words.every(function (word) {
        return contents[i].indexOf(word) >= 0;
      })
    );
  }

  function apply() {
    var words = text.value.toLowerCase().split(/\s+/).filter(Boolean);
    var active = words.length > 0 || selects.some(function (select) { return select.value; });
    var shown = 0;
    if (!contents) read();
    items.forEach(function (item, i) {
      item.hidden = !wanted(item, i, words);
      if (!item.hidden) shown += 1;
    });
    groups.forEach(function (group) {
      var left = group.querySelector("[data-finding]:not([hidden])") !== null;
      group.hidden = !left;
      if (group.tagName === "DETAILS") group.open = active && left;
    });
    count.textContent = (active ? shown + " of " : "") + items.length + " findings shown";
  }

  function order() {
    if (!cards.length) return;
    var key = function (card) { return sort.value === "id" ? card.id : card.getAttribute("data-set"); };
    var sorted = cards.slice();
    if (sort.value) sorted.sort(function (a, b) { return key(a) < key(b) ? -1 : key(a) > key(b) ? 1 : 0; });
    var mark = document.createComment("");
    cards[0].parentNode.insertBefore(mark, document.querySelector("article.card"));
    sorted.forEach(function (card) { mark.parentNode.insertBefore(card, mark); });
    mark.remove();
  }

  text.addEventListener("input", function () {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 120);
  });
  selects.forEach(function (select) {
    select.addEventListener("change", apply);
  });
  sort.addEventListener("change", order);
  document.getElementById("filter-clear").addEventListener("click", function () {
    text.value = "";
    selects.forEach(function (select) { select.value = ""; });
    apply();
    text.focus();
  });
  count.textContent = items.length + " findings";
  bar.hidden = false;
})();
