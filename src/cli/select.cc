#include "cli/select.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

namespace muster::cli {
namespace {

using Json = nlohmann::ordered_json;

// The value under "a.b", or null.
const Json* Find(const Json& item, std::string_view key) {
  if (!item.is_object()) return nullptr;
  if (const auto whole = item.find(std::string(key)); whole != item.end()) return &*whole;
  const auto dot = key.find('.');
  if (dot == std::string_view::npos) return nullptr;
  const auto outer = item.find(std::string(key.substr(0, dot)));
  return outer == item.end() ? nullptr : Find(*outer, key.substr(dot + 1));
}

std::string TextOf(const Json* value) {
  if (value == nullptr || value->is_null()) return "";
  return value->is_string() ? value->get<std::string>() : value->dump();
}

std::optional<double> NumberOf(const std::string& text) {
  const auto value = Json::parse(text, nullptr, false);
  if (!value.is_number()) return std::nullopt;
  return value.get<double>();
}

Result<void> Known(const Json& list, std::string_view key) {
  if (list.empty()) return {};
  for (const auto& item : list) {
    if (Find(item, key) != nullptr) return {};
  }
  std::string keys;
  for (const auto& [name, value] : list.front().items()) keys += (keys.empty() ? "" : ", ") + name;
  return Fail(ErrorCode::kUsage, "nothing in this list has \"" + std::string(key) + "\"",
              "it has: " + keys);
}

// Numbers by size, before texts; texts as letters.
int Compare(const std::string& a, const std::string& b) {
  const auto left = NumberOf(a), right = NumberOf(b);
  if (left && right) return *left < *right ? -1 : *left > *right ? 1 : 0;
  if (left || right) return left ? -1 : 1;
  return a.compare(b);
}

struct Condition {
  std::string key, op, value;
};

Result<std::vector<Condition>> Parse(std::string_view text) {
  constexpr std::array<std::string_view, 7> kOps = {"!=", ">=", "<=", "=", ">", "<", "~"};
  std::vector<Condition> out;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    const auto one = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const auto at = one.find_first_of("!=<>~");
    std::string_view op;
    for (const auto candidate : kOps) {
      if (op.empty() && at != one.npos && one.substr(at).starts_with(candidate)) op = candidate;
    }
    if (op.empty() || at == 0) {
      return Fail(ErrorCode::kUsage, "--filter: \"" + std::string(one) + "\" is no condition",
                  "write KEY=VALUE, or with != >= <= > < or ~ (contains); commas between");
    }
    out.push_back(
        {std::string(one.substr(0, at)), std::string(op), std::string(one.substr(at + op.size()))});
  }
  return out;
}

bool Holds(const Json& item, const Condition& condition) {
  const auto text = TextOf(Find(item, condition.key));
  if (condition.op == "~") return text.find(condition.value) != std::string::npos;
  const int order = Compare(text, condition.value);
  if (condition.op == "=") return order == 0;
  if (condition.op == "!=") return order != 0;
  if (text.empty()) return false;
  if (condition.op == ">=") return order >= 0;
  if (condition.op == "<=") return order <= 0;
  return condition.op == ">" ? order > 0 : order < 0;
}

}  // namespace

Result<void> Select(Json& list, const Selection& selection) {
  const auto conditions = Parse(selection.filter);
  if (!conditions) return tl::unexpected(conditions.error());
  std::vector<Json> items;
  for (const auto& condition : *conditions) {
    if (auto known = Known(list, condition.key); !known) return known;
  }
  const bool down = selection.sort.starts_with('-');
  const auto key = selection.sort.substr(down ? 1 : 0);
  if (!selection.sort.empty()) {
    if (auto known = Known(list, key); !known) return known;
  }
  for (auto& item : list) {
    const bool all = std::all_of(conditions->begin(), conditions->end(),
                                 [&item](const Condition& one) { return Holds(item, one); });
    if (all) items.push_back(std::move(item));
  }
  if (!selection.sort.empty()) {
    std::stable_sort(items.begin(), items.end(), [&](const Json& a, const Json& b) {
      const int order = Compare(TextOf(Find(a, key)), TextOf(Find(b, key)));
      return down ? order > 0 : order < 0;
    });
  }
  if (selection.limit > 0 && items.size() > static_cast<std::size_t>(selection.limit)) {
    items.resize(static_cast<std::size_t>(selection.limit));
  }
  list = std::move(items);
  return {};
}

}  // namespace muster::cli
