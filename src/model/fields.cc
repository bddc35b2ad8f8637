#include "model/fields.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <utility>

#include "base/units.h"
#include "model/vocabulary.h"

namespace muster::model {
namespace {

struct QuantityWords {
  std::string_view noun;
  std::string_view rule;
};

QuantityWords WordsOf(Quantity quantity) {
  switch (quantity) {
    case Quantity::kGpus:
      return {"a number of GPUs", "a number with at most three decimals, such as 2 or 0.25"};
    case Quantity::kCores:
      return {"a number of cores", "a number with at most three decimals, such as 4 or 0.5"};
    case Quantity::kShare:
      return {"a number", "a number with at most three decimals, such as 2 or 0.5"};
    case Quantity::kBytes:
      return {"an amount of memory",
              "bytes, or a number with Ki, Mi, Gi, Ti, Pi (of 1024) or k, M, G, T, P (of 1000), "
              "such as 16Gi"};
    case Quantity::kPieces:
      return {"a whole number", "a whole number, such as 1"};
    case Quantity::kDuration:
      return {"a duration", "a number with ms, s, m, h or d, such as 90s or 1h30m"};
  }
  return {};
}

std::optional<std::int64_t> Parse(std::string_view text, Quantity quantity) {
  switch (quantity) {
    case Quantity::kGpus:
    case Quantity::kCores:
    case Quantity::kShare:
      return ParseMilli(text);
    case Quantity::kBytes:
      return ParseBytes(text);
    case Quantity::kPieces:
      return ParseWhole(text);
    case Quantity::kDuration:
      return ParseDurationMs(text);
  }
  return std::nullopt;
}

// Why a text is no quantity, for the mistakes that people make most.
std::string WhyNot(std::string_view text, Quantity quantity) {
  const auto noun = std::string(WordsOf(quantity).noun);
  if (text.starts_with('-') && Parse(text.substr(1), quantity)) {
    return Quoted(text) + " is negative";
  }
  if (quantity == Quantity::kDuration && ParseMilli(text)) return Quoted(text) + " has no unit";
  const auto digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits > 18) return Quoted(text) + " is too large";
  auto out = Quoted(text) + " is not " + noun;
  if (quantity == Quantity::kBytes && (text.ends_with('B') || text.ends_with('b')) &&
      Parse(text.substr(0, text.size() - 1), quantity)) {
    out += "; did you mean " + Quoted(text.substr(0, text.size() - 1)) + "?";
  }
  return out;
}

bool IsScalar(const DocNode& node, std::string_view noun, std::string_view rule,
              Problems& problems) {
  if (node.kind == DocKind::kScalar && (!node.text.empty() || node.quoted)) return true;
  problems.Error(node.mark,
                 NameOf(node) + " must be " + std::string(noun) + ", not " + DescribeNode(node),
                 std::string(rule));
  return false;
}

}  // namespace

std::string NameOf(const DocNode& node) {
  return node.key.empty() ? "the entry" : Quoted(node.key);
}

std::optional<std::int64_t> ParseWhole(std::string_view text) {
  std::int64_t value = 0;
  if (text.empty() || text[0] < '0' || text[0] > '9') return std::nullopt;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

MapReader::MapReader(const DocNode& node, std::string_view what, Problems& problems)
    : node_(node), what_(what), problems_(problems) {
  if (node.kind != DocKind::kMap) {
    problems.Error(node.mark,
                   (node.key.empty() ? std::string(what) : Quoted(node.key)) +
                       " must be a map, not " + DescribeNode(node),
                   "`key: value` pairs");
    return;
  }
  for (const auto& child : node.children) present_.emplace(child.key, &child);
}

const DocNode* MapReader::Take(std::string_view key) {
  known_.push_back(key);
  const auto found = present_.find(key);
  return found == present_.end() ? nullptr : found->second;
}

const DocNode* MapReader::Require(std::string_view key, std::string_view example) {
  const auto* node = Take(key);
  if (node == nullptr && node_.kind == DocKind::kMap) {
    problems_.Missing(node_.mark, key, std::string(what_) + " needs the key " + Quoted(key),
                      std::string(example));
  }
  return node;
}

void MapReader::Finish() {
  const std::set<std::string_view> known(known_.begin(), known_.end());
  const std::vector<std::string_view> sorted(known.begin(), known.end());
  for (const auto& child : node_.children) {
    if (node_.kind != DocKind::kMap || known.contains(child.key)) continue;
    if (problems_.Full()) {
      problems_.Error(child.key_mark, {});
      continue;
    }
    auto message = "unknown key " + Quoted(child.key);
    const auto near = Nearest(child.key, sorted);
    if (!near.empty()) message += "; did you mean " + Quoted(near) + "?";
    problems_.Error(child.key_mark, std::move(message), JoinChoices(sorted));
  }
}

Bounds Usual(Quantity quantity) {
  switch (quantity) {
    case Quantity::kGpus:
    case Quantity::kCores:
    case Quantity::kShare:
      return {0, kMostMilli};
    case Quantity::kBytes:
      return {0, kMostBytes};
    case Quantity::kPieces:
      return {0, kMostPieces};
    case Quantity::kDuration:
      return {0, kMostDurationMs};
  }
  return {};
}

std::string WriteQuantity(std::int64_t value, Quantity quantity) {
  switch (quantity) {
    case Quantity::kGpus:
    case Quantity::kCores:
    case Quantity::kShare:
      return FormatMilli(value);
    case Quantity::kBytes:
      return FormatBytes(value);
    case Quantity::kPieces:
      return std::to_string(value);
    case Quantity::kDuration:
      return FormatDurationMs(value);
  }
  return {};
}

std::optional<std::int64_t> ReadQuantity(const DocNode& node, Quantity quantity, Problems& problems,
                                         std::optional<Bounds> bounds) {
  const auto words = WordsOf(quantity);
  if (!IsScalar(node, words.noun, words.rule, problems)) return std::nullopt;
  const auto value = Parse(node.text, quantity);
  if (!value) {
    problems.Error(node.mark, NameOf(node) + ": " + WhyNot(node.text, quantity),
                   std::string(words.rule));
    return std::nullopt;
  }
  const auto range = bounds.value_or(Usual(quantity));
  if (*value < range.least || *value > range.most) {
    problems.Error(
        node.mark,
        NameOf(node) + ": " + Quoted(node.text) +
            (*value < range.least ? " is too small" : " is too large"),
        WriteQuantity(range.least, quantity) + " to " + WriteQuantity(range.most, quantity));
    return std::nullopt;
  }
  return value;
}

std::optional<std::int64_t> ReadInteger(const DocNode& node, Bounds bounds, Problems& problems) {
  const auto rule =
      "a whole number from " + std::to_string(bounds.least) + " to " + std::to_string(bounds.most);
  if (!IsScalar(node, "a whole number", rule, problems)) return std::nullopt;
  const auto value = node.quoted ? std::nullopt : ParseWhole(node.text);
  if (!value || *value < bounds.least || *value > bounds.most) {
    const auto why = node.quoted ? Quoted(node.text) + " is a text, not a number"
                     : value     ? Quoted(node.text) + " is out of range"
                                 : WhyNot(node.text, Quantity::kPieces);
    problems.Error(node.mark, NameOf(node) + ": " + why, rule);
    return std::nullopt;
  }
  return value;
}

std::optional<bool> ReadBool(const DocNode& node, Problems& problems) {
  if (!IsScalar(node, "true or false", "true or false", problems)) return std::nullopt;
  if (!node.quoted && node.text == "true") return true;
  if (!node.quoted && node.text == "false") return false;
  problems.Error(node.mark, NameOf(node) + " must be true or false, not " + DescribeNode(node),
                 "true or false");
  return std::nullopt;
}

std::optional<std::string> ReadText(const DocNode& node, Problems& problems) {
  if (!IsScalar(node, "a text", "a text", problems)) return std::nullopt;
  if (node.text.find('\0') != std::string::npos) {
    problems.Error(node.mark, NameOf(node) + " holds a NUL character", "any other text");
    return std::nullopt;
  }
  return node.text;
}

std::optional<std::string> ReadMatching(const DocNode& node, bool (*legal)(std::string_view),
                                        std::string_view noun, std::string_view rule,
                                        Problems& problems) {
  if (!IsScalar(node, noun, rule, problems)) return std::nullopt;
  if (legal(node.text)) return node.text;
  problems.Error(node.mark,
                 NameOf(node) + ": " + DescribeNode(node) + " is not " + std::string(noun),
                 std::string(rule));
  return std::nullopt;
}

std::optional<std::size_t> ReadChoice(const DocNode& node,
                                      std::span<const std::string_view> choices,
                                      Problems& problems) {
  const auto rule = JoinChoices(choices);
  if (!IsScalar(node, "one of its words", rule, problems)) return std::nullopt;
  const auto found = std::find(choices.begin(), choices.end(), node.text);
  if (found != choices.end()) return static_cast<std::size_t>(found - choices.begin());
  auto message = NameOf(node) + ": " + DescribeNode(node) + " is not known";
  const auto near = Nearest(node.text, choices);
  if (!near.empty()) message += "; did you mean " + Quoted(near) + "?";
  problems.Error(node.mark, std::move(message), rule);
  return std::nullopt;
}

std::vector<std::string> ReadNameList(const DocNode& node, bool (*legal)(std::string_view),
                                      std::string_view noun, std::string_view rule,
                                      Problems& problems) {
  std::vector<std::string> out;
  if (node.kind != DocKind::kSequence || node.children.empty()) {
    problems.Error(node.mark, NameOf(node) + " must be a list, not " + DescribeNode(node),
                   "a list such as [a, b], each " + std::string(noun) + ": " + std::string(rule));
    return out;
  }
  std::set<std::string> seen;
  for (const auto& item : node.children) {
    if (item.kind != DocKind::kScalar || !legal(item.text)) {
      problems.Error(item.mark,
                     NameOf(node) + ": " + DescribeNode(item) + " is not " + std::string(noun),
                     std::string(rule));
    } else if (!seen.insert(item.text).second) {
      problems.Error(item.mark, NameOf(node) + " names " + Quoted(item.text) + " twice",
                     "each entry once");
    } else {
      out.push_back(item.text);
    }
  }
  return out;
}

std::map<std::string, std::string> ReadTextMap(const DocNode& node,
                                               bool (*legal_key)(std::string_view),
                                               std::string_view noun, std::string_view rule,
                                               Problems& problems) {
  std::map<std::string, std::string> out;
  if (node.kind != DocKind::kMap) {
    problems.Error(node.mark, NameOf(node) + " must be a map, not " + DescribeNode(node),
                   "`key: value` pairs");
    return out;
  }
  for (const auto& child : node.children) {
    if (!legal_key(child.key)) {
      problems.Error(child.key_mark, Quoted(child.key) + " is not " + std::string(noun),
                     std::string(rule));
    } else if (auto text = ReadText(child, problems)) {
      out.emplace(child.key, std::move(*text));
    }
  }
  return out;
}

std::map<std::string, std::string> ReadLabels(const DocNode& node, Problems& problems) {
  return ReadTextMap(node, IsLabelName, "the name of a label",
                     "letters, digits, `.`, `_`, `-`, `/` and `:`, at most 253", problems);
}

std::vector<std::string> ReadGpuTypes(const DocNode& node, Problems& problems) {
  return ReadNameList(node, IsGpuTypeName, "a GPU type",
                      "a name beginning with a capital letter or a digit, or `virtual`", problems);
}

}  // namespace muster::model
