// Listing: which jobs a list shows, in which order, and where its next page begins.
//
// Conditions are texts of people ("phase=running,gpus>=4"); what cannot be understood is refused
// with what can. A page is found without sorting everything: what comes before the cursor is left
// out, then the first `limit` are picked. So a page of a hundred thousand jobs costs milliseconds,
// and no job that stays is skipped or shown twice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"
#include "control/controller.h"
#include "model/document.h"

namespace muster::api {

struct Condition {
  enum class Op : std::uint8_t { kIs, kIsNot, kContains, kAtLeast, kAtMost, kAbove, kBelow };
  std::string key;
  Op op = Op::kIs;
  std::string value;
  std::int64_t number = 0;  // of the value, for keys that are numbers
};

Result<std::vector<Condition>> ParseFilter(std::string_view text);
bool Holds(const std::vector<Condition>& conditions, const state::JobRecord& job);

// "-priority": by which key, and whether the largest come first.
struct Order {
  std::string key = "id";
  bool descending = true;
};
Order ParseOrder(std::string_view text);

using SortKey = std::variant<std::int64_t, std::string_view>;  // of one kind within a list
struct Entry {
  SortKey key;
  const state::JobRecord* job = nullptr;
};
SortKey KeyOf(const Order& order, const state::JobRecord& job);

// The first `limit` entries behind the cursor, in order. The cursor is empty, or CursorOf() the
// last entry of the page before.
Result<std::vector<Entry>> Page(std::vector<Entry> entries, const Order& order,
                                const std::string& cursor, std::size_t limit);
std::string CursorOf(const Entry& entry);
std::string CursorAt(model::JobNumber job);  // of a list by number

// Only these keys of each object, "status.phase" for one inside another.
Result<void> CheckFields(std::string_view fields);  // not too many
model::DocNode Pick(const model::DocNode& node, const std::string& fields);

}  // namespace muster::api
