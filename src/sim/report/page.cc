#include "sim/report/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <sstream>

namespace muster::sim::report {
namespace {

constexpr double kWide = 880, kNarrow = 350;

constexpr std::string_view kOurs = "<meta name=\"generator\" content=\"muster sim report\"/>\n";
constexpr std::string_view kFiles = "<meta name=\"muster-report-files\" content=\"";

constexpr std::string_view kPageStyle = R"(* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", "Liberation Sans", sans-serif; }
main { max-width: 928px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 28px; line-height: 1.2; margin: 0 0 20px; overflow-wrap: anywhere; }
h2 { font-size: 20px; margin: 44px 0 12px; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 4px 20px; margin: 0; font-size: 15px; }
dt { color: var(--muted); }
dd { margin: 0; overflow-wrap: anywhere; unicode-bidi: isolate; }
.scroll { overflow-x: auto; margin: 20px 0; }
table { border-collapse: collapse; font-size: 15px; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--muted); font-size: 14px; padding-bottom: 8px; }
th, td { padding: 6px 0 6px 26px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--grid);
  unicode-bidi: isolate; }
th:first-child { text-align: left; padding-left: 0; }
thead th { color: var(--muted); font-weight: 500; border-bottom-color: var(--muted); }
tbody th { font-weight: 500; }
figure { margin: 20px 0 36px; break-inside: avoid; }
.note { color: var(--muted); font-size: 14px; margin: -8px 0 28px; }
figcaption { color: var(--muted); font-size: 14px; margin-top: 6px; }
a { color: var(--c0); }
svg.plot { display: block; width: 100%; height: auto; }
svg.narrow { display: none; max-width: 480px; }
@media (max-width: 700px) {
  main { padding: 20px 16px 48px; }
  h1 { font-size: 23px; }
  table { font-size: 14px; }
  th, td { padding-left: 14px; }
  svg.wide { display: none; }
  svg.narrow { display: block; }
}
@media (max-width: 500px) {
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: 8px; }
}
)";

std::string RowOf(const std::vector<Cell>& cells) {
  std::string out = "<tr>";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const auto text = Escape(cells[i].text);
    if (i == 0) {
      out += fmt::format("<th scope=\"row\">{}</th>", text);
    } else {
      out += cells[i].best ? "<td><strong>" + text + "</strong></td>" : "<td>" + text + "</td>";
    }
  }
  return out + "</tr>\n";
}

}  // namespace

void Page::Add(const std::vector<std::pair<std::string, std::string>>& facts) {
  body_ += "<dl>\n";
  for (const auto& [name, value] : facts) {
    body_ += fmt::format("<dt>{}</dt><dd>{}</dd>\n", Escape(name), Escape(value));
  }
  body_ += "</dl>\n";
}

void Page::Add(const Grid& grid) {
  // A table that is too wide scrolls by itself, also by keyboard.
  body_ += fmt::format("<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{}\">\n",
                       Escape(grid.caption));
  body_ += fmt::format("<table>\n<caption>{}</caption>\n<thead><tr>", Escape(grid.caption));
  for (const auto& name : grid.head)
    body_ += fmt::format("<th scope=\"col\">{}</th>", Escape(name));
  body_ += "</tr></thead>\n<tbody>\n";
  for (const auto& row : grid.rows) body_ += RowOf(row);
  body_ += "</tbody>\n</table>\n</div>\n";
  if (!grid.note.empty()) body_ += fmt::format("<p class=\"note\">{}</p>\n", Escape(grid.note));
}

void Page::Add(const Plot& plot) {
  const auto wide = plot.draw(kWide);
  body_ += "<figure>\n" + SvgPart(wide, plot.caption, plot.name, "wide") +
           SvgPart(plot.draw(kNarrow), plot.caption, plot.name + "-narrow", "narrow");
  const auto file = plot.name + ".svg";
  body_ += fmt::format("<figcaption>{} <a href=\"{}\">{}</a></figcaption>\n</figure>\n",
                       Escape(plot.note), file, file);
  plots_.push_back({file, plot.caption.title, SvgFile(wide, plot.caption)});
}

void Page::Heading(const std::string& text) { body_ += fmt::format("<h2>{}</h2>\n", Escape(text)); }

std::vector<File> Page::Finish() && {
  std::vector<std::string> names;
  names.reserve(plots_.size());
  for (const auto& plot : plots_) names.push_back(plot.name);
  auto page = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n{}{}{}\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
      "<title>{}</title>\n<style>\n{}{}</style>\n</head>\n<body>\n<main>\n<h1>{}</h1>\n{}"
      "</main>\n</body>\n</html>\n",
      kOurs, kFiles, fmt::join(names, " "), Escape(title_), PlotStyle(), kPageStyle, Escape(title_),
      body_);
  std::vector<File> files = {{kPageName, "all of it", std::move(page)}};
  for (auto& plot : plots_) files.push_back(std::move(plot));
  return files;
}

std::string FileName(const std::string& name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    out += std::isalnum(byte) != 0 ? static_cast<char>(std::tolower(byte)) : '-';
  }
  return out;
}

bool IsReport(const std::string& page) {
  return page.find(kOurs) != std::string::npos && page.find(kFiles) != std::string::npos;
}

std::vector<std::string> PlotsOf(const std::string& page) {
  const auto begin = page.find(kFiles);
  if (!IsReport(page)) return {};
  const auto end = page.find('"', begin + kFiles.size());
  if (end == std::string::npos) return {};
  std::istringstream list(page.substr(begin + kFiles.size(), end - begin - kFiles.size()));
  std::vector<std::string> names;
  for (std::string name; list >> name;) {
    // Whatever the page says, nothing but a plot in the same folder is meant.
    if (name.ends_with(".svg") && FileName(name.substr(0, name.size() - 4)) + ".svg" == name) {
      names.push_back(name);
    }
  }
  return names;
}

}  // namespace muster::sim::report
