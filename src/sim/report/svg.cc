#include "sim/report/svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

namespace muster::sim::report {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

// Whether a byte begins a character.
bool Begins(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

// The JSON library replaces what is no UTF-8.
std::string Utf8(std::string_view text) {
  using Json = nlohmann::json;
  const auto quoted = Json(text).dump(-1, ' ', false, Json::error_handler_t::replace);
  return Json::parse(quoted).get<std::string>();
}

std::string Short(double value) {
  const double tenths = std::round(value * 10);
  const auto whole = static_cast<long long>(std::isfinite(tenths) ? tenths : 0);
  if (whole % 10 == 0) return fmt::format("{}", whole / 10);
  return fmt::format("{:.1f}", static_cast<double>(whole) / 10);
}

std::string Class(std::string_view classes) {
  return classes.empty() ? "" : fmt::format(" class=\"{}\"", classes);
}

}  // namespace

std::string Escape(std::string_view text) {
  std::string out;
  const std::string clean = Utf8(text);
  for (std::size_t i = 0; i < clean.size(); ++i) {
    const char c = clean[i];
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\'') {
      out += "&#39;";
    } else if (c == '\n' || c == '\t' || c == '\r') {
      out += ' ';
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      out += kReplacement;
    } else if (clean.compare(i, 3, "\xEF\xBF\xBE") == 0 ||
               clean.compare(i, 3, "\xEF\xBF\xBF") == 0) {
      out += kReplacement;
      i += 2;
    } else {
      out += c;
    }
  }
  return out;
}

std::string Shorten(std::string_view text, std::size_t characters) {
  std::string clean = Utf8(text);
  if (static_cast<std::size_t>(std::ranges::count_if(clean, Begins)) <= characters) return clean;
  std::size_t end = 0;
  for (std::size_t kept = 0; end < clean.size(); ++end) {
    if (Begins(clean[end]) && ++kept == std::max<std::size_t>(1, characters)) break;
  }
  return clean.substr(0, end) + "…";
}

double TextWidth(std::string_view text) {
  return 6.9 * static_cast<double>(std::ranges::count_if(text, Begins));
}

Pen& Pen::MoveTo(double x, double y) {
  data_ += "M" + Short(x) + " " + Short(y);
  return *this;
}

Pen& Pen::To(double x, double y) {
  data_ += "L" + Short(x) + " " + Short(y);
  return *this;
}

Pen& Pen::ToX(double x) {
  data_ += "H" + Short(x);
  return *this;
}

Pen& Pen::ToY(double y) {
  data_ += "V" + Short(y);
  return *this;
}

Pen& Pen::Box(double x, double y, double width, double height) {
  return MoveTo(x, y).ToX(x + width).ToY(y + height).ToX(x).Close();
}

Pen& Pen::Close() {
  data_ += "Z";
  return *this;
}

void Drawing::Text(double x, double y, std::string_view text, std::string_view classes) {
  body_ += fmt::format("<text x=\"{}\" y=\"{}\"{}>{}</text>\n", Short(x), Short(y), Class(classes),
                       Escape(text));
}

void Drawing::Line(double x1, double y1, double x2, double y2, std::string_view classes) {
  body_ += fmt::format("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"{}/>\n", Short(x1), Short(y1),
                       Short(x2), Short(y2), Class(classes));
}

void Drawing::Box(double x, double y, double width, double height, std::string_view classes,
                  std::string_view tip) {
  body_ += fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"{}", Short(x), Short(y),
                       Short(width), Short(height), Class(classes));
  body_ += tip.empty() ? "/>\n" : fmt::format("><title>{}</title></rect>\n", Escape(tip));
}

void Drawing::Dot(double x, double y, double radius, std::string_view classes) {
  body_ += fmt::format("<circle cx=\"{}\" cy=\"{}\" r=\"{}\"{}/>\n", Short(x), Short(y),
                       Short(radius), Class(classes));
}

void Drawing::Path(const Pen& pen, std::string_view classes) {
  if (pen.empty()) return;
  body_ += fmt::format("<path d=\"{}\"{}/>\n", pen.data(), Class(classes));
}

std::string SvgFile(const Drawing& drawing, const Caption& caption) {
  constexpr double kMargin = 18, kHead = 44;  // around the drawing; above it is the title
  const auto width = Short(drawing.width() + 2 * kMargin);
  const auto height = Short(drawing.height() + kMargin + kHead);
  Drawing head(drawing.width());
  head.Text(0, -20, caption.title, "strong");
  return fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" width=\"{}\" height=\"{}\" "
      "viewBox=\"-{} -{} {} {}\" role=\"img\" aria-labelledby=\"t d\">\n"
      "<title id=\"t\">{}</title>\n<desc id=\"d\">{}</desc>\n<style>\n{}</style>\n"
      "<rect x=\"-{}\" y=\"-{}\" width=\"{}\" height=\"{}\" class=\"paper\"/>\n{}{}</svg>\n",
      width, height, kMargin, kHead, width, height, Escape(caption.title),
      Escape(caption.description), PlotStyle(), kMargin, kHead, width, height, head.body(),
      drawing.body());
}

std::string SvgPart(const Drawing& drawing, const Caption& caption, std::string_view id,
                    std::string_view classes) {
  return fmt::format(
      "<svg class=\"plot {}\" viewBox=\"0 0 {} {}\" role=\"img\" aria-labelledby=\"{}-t {}-d\">\n"
      "<title id=\"{}-t\">{}</title>\n<desc id=\"{}-d\">{}</desc>\n{}</svg>\n",
      classes, Short(drawing.width()), Short(drawing.height()), id, id, id, Escape(caption.title),
      id, Escape(caption.description), drawing.body());
}

std::string ColorClass(std::size_t index) { return fmt::format("c{}", index % kColors); }

std::string LevelClass(int level) { return fmt::format("s{}", std::clamp(level, 0, kLevels - 1)); }

}  // namespace muster::sim::report
