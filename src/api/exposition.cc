#include "api/exposition.h"

#include <fmt/format.h>

#include <iterator>

namespace muster::api {
namespace {

void AppendEscaped(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
}

}  // namespace

void Exposition::Head(std::string_view name, std::string_view type, std::string_view help) {
  fmt::format_to(std::back_inserter(text_), "# HELP {} {}\n# TYPE {} {}\n", name, help, name, type);
}

void Exposition::Value(std::string_view name, Labels labels, double value) {
  Line(name, "", labels, "", value);
}

void Exposition::Buckets(std::string_view name, Labels labels, const Histogram& histogram) {
  for (std::size_t i = 0; i < Histogram::kBounds.size(); ++i) {
    Line(name, "_bucket", labels, fmt::format("{}", Histogram::kBounds[i]),
         static_cast<double>(histogram.UpTo(i)));
  }
  const auto all = static_cast<double>(histogram.count());
  Line(name, "_bucket", labels, "+Inf", all);
  Line(name, "_sum", labels, "", histogram.sum_s());
  Line(name, "_count", labels, "", all);
}

void Exposition::Line(std::string_view name, std::string_view suffix, Labels labels,
                      std::string_view bound, double value) {
  text_ += name;
  text_ += suffix;
  char before = '{';
  const auto put = [this, &before](std::string_view label, std::string_view of) {
    text_ += std::exchange(before, ',');
    text_ += label;
    text_ += "=\"";
    AppendEscaped(text_, of);
    text_ += '"';
  };
  for (const auto& [label, of] : labels) put(label, of);
  if (!bound.empty()) put("le", bound);
  if (before == ',') text_ += '}';
  fmt::format_to(std::back_inserter(text_), " {}\n", value);
}

}  // namespace muster::api
