// Filters and searches the findings of a report. The page is complete without it: this only unhides the controls.
(function () {
  "use strict";
  var bar = document.getElementById("filter");
  var items = Array.prototype.slice.call(document.querySelectorAll("[data-finding]"));
  if (!bar || !items.length) return;
  var text = document.getElementById("filter-text");
  var count = document.getElementById("filter-count");
  var selects = Array.prototype.slice.call(bar.querySelectorAll("select"));
  var groups = Array.prototype.slice.call(document.querySelectorAll(".chunk, details.rest")).reverse();
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

  text.addEventListener("input", function () {
    clearTimeout(waiting);
    waiting = setTimeout(apply, 120);
  });
  selects.forEach(function (select) {
    select.addEventListener("change", apply);
  });
  document.getElementById("filter-clear").addEventListener("click", function () {
    text.value = "";
    selects.forEach(function (select) { select.value = ""; });
    apply();
    text.focus();
  });
  count.textContent = items.length + " findings";
  bar.hidden = false;
})();
