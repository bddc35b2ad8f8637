#include "sim/case_words.h"

#include <algorithm>
#include <charconv>

#include "base/units.h"
#include "model/vocabulary.h"

namespace muster::sim {
namespace {

constexpr std::int64_t kMostPerPlace = 64;

std::string Quoted(std::string_view text) { return "`" + std::string(text) + "`"; }

std::string Joined(const std::vector<std::string>& words) {
  std::string out;
  for (const auto& word : words) out += (out.empty() ? "" : ", ") + word;
  return out;
}

// "0-1+4" -> bits 0, 1 and 4; nothing where that is no list of GPUs.
std::optional<std::uint64_t> ParseDevices(std::string_view text) {
  std::uint64_t out = 0;
  for (const auto& part : SplitAt(text, '+')) {
    const auto dash = part.find('-');
    const auto first = ParseWhole(std::string_view(part).substr(0, dash));
    const auto last =
        dash == std::string::npos ? first : ParseWhole(std::string_view(part).substr(dash + 1));
    if (!first || !last || *first > *last || *last >= 64) return std::nullopt;
    for (auto i = *first; i <= *last; ++i) out |= 1ULL << i;
  }
  return out;
}

std::optional<std::int64_t> ParseAmount(const std::string& resource, std::string_view text) {
  if (text == "unlimited") return model::kUnlimited;
  if (resource == model::kMemory) return ParseBytes(text);
  const bool milli =
      resource == model::kGpus || resource == model::kCpus || model::IsGpuTypeName(resource);
  return milli ? ParseMilli(text) : ParseWhole(text);
}

}  // namespace

void CaseProblems::Add(int line, const std::string& what, const std::string& allowed) {
  lines.push_back(std::to_string(line) + ": " + what +
                  (allowed.empty() ? "" : "; allowed: " + allowed));
}

std::optional<std::int64_t> ParseWhole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool all = error == std::errc{} && end == text.data() + text.size();
  return all && value >= 0 ? std::optional(value) : std::nullopt;
}

std::vector<std::string> SplitAt(std::string_view text, char separator) {
  std::vector<std::string> out;
  for (;;) {
    const auto at = text.find(separator);
    out.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return out;
    text.remove_prefix(at + 1);
  }
}

std::vector<CaseWords> CutCase(std::string_view text, CaseProblems& problems) {
  std::vector<CaseWords> out;
  int number = 0;
  for (const auto& line : SplitAt(text, '\n')) {
    CaseWords words;
    words.line = ++number;
    const auto said = std::string_view(line).substr(0, line.find('#'));
    for (std::size_t at = 0; at < said.size();) {
      const auto first = said.find_first_not_of(" \t\r", at);
      if (first == std::string_view::npos) break;
      const auto last = std::min(said.find_first_of(" \t\r", first), said.size());
      const auto word = said.substr(first, last - first);
      at = last;
      const auto equals = word.find('=');
      if (words.verb.empty()) {
        words.verb = word;
      } else if (equals == std::string_view::npos) {
        words.plain.emplace_back(word);
      } else if (equals == 0 || equals + 1 == word.size()) {
        problems.Add(number, Quoted(word) + " lacks a key or a value", "key=value");
      } else {
        words.pairs.emplace_back(word.substr(0, equals), word.substr(equals + 1));
      }
    }
    if (!words.verb.empty()) out.push_back(std::move(words));
  }
  return out;
}

std::vector<std::string> LineReader::Names(std::string_view what) {
  names_ = words_.plain.size();
  if (names_ == 0) Problem(Quoted(words_.verb) + " needs " + std::string(what));
  return words_.plain;
}

std::string LineReader::Name(std::string_view what) {
  names_ = 1;
  if (!words_.plain.empty()) return words_.plain[0];
  Problem(Quoted(words_.verb) + " needs " + std::string(what));
  return {};
}

bool LineReader::Flag(std::string_view word) {
  flags_.emplace_back(word);
  const auto first =
      words_.plain.begin() + static_cast<std::ptrdiff_t>(std::min(names_, words_.plain.size()));
  return std::find(first, words_.plain.end(), word) != words_.plain.end();
}

std::optional<std::string> LineReader::Text(std::string_view key) {
  keys_.emplace_back(key);
  std::optional<std::string> out;
  for (std::size_t i = 0; i < words_.pairs.size(); ++i) {
    if (words_.pairs[i].first != key) continue;
    if (out) Problem(Quoted(key) + " stands here twice");
    out = words_.pairs[i].second;
    taken_[i] = true;
  }
  return out;
}

template <typename Parse>
auto LineReader::Parsed(std::string_view key, Parse parse, const char* allowed)
    -> decltype(parse(std::string_view{})) {
  const auto text = Text(key);
  if (!text) return {};
  auto value = parse(*text);
  if (!value) Problem(Quoted(*text) + " is no value of " + Quoted(key), allowed);
  return value;
}

std::optional<std::int64_t> LineReader::Whole(std::string_view key) {
  return Parsed(key, ParseWhole, "a whole number");
}

std::optional<std::int64_t> LineReader::Milli(std::string_view key) {
  return Parsed(key, ParseMilli, "a number with at most three decimals");
}

std::optional<std::int64_t> LineReader::Bytes(std::string_view key) {
  return Parsed(key, ParseBytes, "an amount of memory such as 16Gi");
}

std::optional<std::int64_t> LineReader::DurationMs(std::string_view key) {
  return Parsed(key, ParseDurationMs, "a duration such as 90s or 1h30m");
}

std::optional<CountRange> LineReader::Range(std::string_view key) {
  const auto parse = [](std::string_view text) -> std::optional<CountRange> {
    const auto dots = text.find("..");
    const auto least = ParseWhole(text.substr(0, dots));
    const auto most = dots == std::string_view::npos ? least : ParseWhole(text.substr(dots + 2));
    if (!least || !most || *most < std::max<std::int64_t>(*least, 1) || *most > 10'000) return {};
    return CountRange{static_cast<int>(*least), static_cast<int>(*most)};
  };
  return Parsed(key, parse, "a number such as 4, or minimum and maximum such as 2..8");
}

std::vector<std::string> LineReader::List(std::string_view key) {
  const auto text = Text(key);
  return text ? SplitAt(*text, ',') : std::vector<std::string>{};
}

model::Labels LineReader::Labels(std::string_view key) {
  model::Labels out;
  for (const auto& item : List(key)) {
    const auto colon = item.find(':');
    if (colon == std::string::npos || colon == 0) {
      Problem(Quoted(item) + " is no label", "NAME:VALUE,NAME:VALUE");
    } else {
      out[item.substr(0, colon)] = item.substr(colon + 1);
    }
  }
  return out;
}

model::Amounts LineReader::Amounts(std::string_view key) {
  model::Amounts out;
  for (const auto& item : List(key)) {
    const auto colon = item.find(':');
    const std::string resource =
        colon == std::string::npos ? std::string(model::kGpus) : item.substr(0, colon);
    const auto amount =
        ParseAmount(resource, colon == std::string::npos ? item : item.substr(colon + 1));
    if (!amount) {
      Problem(Quoted(item) + " is no amount",
              "GPUs as a number, others as RESOURCE:AMOUNT (4,H100:2,memory:64Gi), or unlimited");
    } else {
      out[resource] = *amount;
    }
  }
  return out;
}

std::vector<CasePlace> LineReader::Places(std::string_view key) {
  std::vector<CasePlace> out;
  const auto allowed = "NODE, NODE:GPUS such as a:0-1+4, or NODE*WORKERS, joined by commas";
  for (const auto& item : List(key)) {
    CasePlace place;
    std::int64_t times = 1;
    const auto mark = item.find_first_of(":*");
    place.node = item.substr(0, mark);
    if (mark != std::string::npos && item[mark] == ':') {
      const auto devices = ParseDevices(std::string_view(item).substr(mark + 1));
      if (!devices) Problem(Quoted(item) + " names no GPUs", allowed);
      place.devices = devices.value_or(0);
      place.chosen = true;
    } else if (mark != std::string::npos) {
      const auto count = ParseWhole(std::string_view(item).substr(mark + 1));
      if (!count || *count > kMostPerPlace) Problem(Quoted(item) + " is no place", allowed);
      times = std::min(count.value_or(1), kMostPerPlace);
    }
    for (; times > 0; --times) out.push_back(place);
  }
  return out;
}

std::optional<std::size_t> LineReader::Choice(std::string_view key,
                                              const std::vector<std::string>& choices) {
  const auto text = Text(key);
  if (!text) return std::nullopt;
  const auto found = std::find(choices.begin(), choices.end(), *text);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  Problem(Quoted(*text) + " is no value of " + Quoted(key), Joined(choices));
  return std::nullopt;
}

void LineReader::Finish() {
  std::vector<std::string> allowed = flags_;
  for (const auto& key : keys_) allowed.push_back(key + "=");
  for (std::size_t i = names_; i < words_.plain.size(); ++i) {
    if (std::find(flags_.begin(), flags_.end(), words_.plain[i]) != flags_.end()) continue;
    Problem(Quoted(words_.plain[i]) + " means nothing here", Joined(allowed));
  }
  for (std::size_t i = 0; i < taken_.size(); ++i) {
    if (taken_[i]) continue;
    Problem(Quoted(words_.pairs[i].first + "=") + " means nothing here", Joined(allowed));
  }
}

}  // namespace muster::sim
