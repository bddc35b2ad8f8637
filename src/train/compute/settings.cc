#include "train/compute/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace muster::train {

namespace {

template <typename T>
std::optional<T> ParseAs(std::string_view text) {
  T out{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

std::string NamesOf(std::span<const Wanted> wanted) {
  std::string out;
  for (const auto& want : wanted) out += (out.empty() ? "" : ", ") + std::string(want.name);
  return out;
}

Result<void> Read(const Settings& settings, const Setting& setting, const Wanted& want) {
  const bool integer = want.integer != nullptr;
  std::optional<double> value;
  if (integer) {
    if (const auto whole = ParseInteger(setting.value)) value = static_cast<double>(*whole);
  } else {
    value = ParseNumber(setting.value);
  }
  if (!value || *value < want.least || *value > want.most || std::isnan(*value)) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("'{}': {} is '{}'", settings.text, setting.name, setting.value),
                fmt::format("a {} from {} to {}", integer ? "whole number" : "number", want.least,
                            want.most));
  }
  if (integer) {
    *want.integer = static_cast<std::int64_t>(*value);
  } else {
    *want.number = *value;
  }
  return {};
}

}  // namespace

std::optional<double> ParseNumber(std::string_view text) { return ParseAs<double>(text); }
std::optional<std::int64_t> ParseInteger(std::string_view text) {
  return ParseAs<std::int64_t>(text);
}

Result<Settings> ParseSettings(std::string_view text) {
  Settings out{.text = std::string(text), .word = {}, .list = {}};
  const auto colon = text.find(':');
  out.word = text.substr(0, colon);
  if (colon == std::string_view::npos) return out;
  std::string_view rest = text.substr(colon + 1);
  while (true) {
    const auto comma = rest.find(',');
    const auto piece = rest.substr(0, comma);
    const auto equals = piece.find('=');
    const bool named = equals != std::string_view::npos;
    Setting setting{named ? std::string(piece.substr(0, equals)) : "",
                    std::string(named ? piece.substr(equals + 1) : piece)};
    if (setting.value.empty() || (named && setting.name.empty())) {
      return Fail(ErrorCode::kInvalid, fmt::format("'{}': a setting is empty", text),
                  "write NAME=VALUE, with commas between them and no spaces");
    }
    out.list.push_back(std::move(setting));
    if (comma == std::string_view::npos) return out;
    rest.remove_prefix(comma + 1);
  }
}

Result<void> ReadSettings(const Settings& settings, std::span<const Wanted> wanted) {
  std::set<std::string_view> seen;
  for (const auto& setting : settings.list) {
    const auto want = std::ranges::find(wanted, setting.name, &Wanted::name);
    if (want == wanted.end()) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("'{}': no setting '{}'", settings.text,
                              setting.name.empty() ? setting.value : setting.name),
                  wanted.empty() ? fmt::format("{} has none", settings.word)
                                 : fmt::format("NAME=VALUE with one of: {}", NamesOf(wanted)));
    }
    if (!seen.insert(setting.name).second) {
      return Fail(ErrorCode::kInvalid,
                  fmt::format("'{}': {} comes twice", settings.text, setting.name), "give it once");
    }
    if (auto read = Read(settings, setting, *want); !read) return read;
  }
  return {};
}

}  // namespace muster::train
