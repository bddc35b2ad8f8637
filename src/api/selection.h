// Selection: which items of a list are shown, in which order, and where the next page begins.
//
// For every list but that of jobs, which has its own for speed and the same words. Which keys there
// are is read from the OpenAPI document; `status.` and `spec.` may be left out ("phase=ready"), and
// of a list one item must meet the condition ("jobs.user=ana"). An unknown key or field, a
// comparison that makes no sense or a cursor of another list is refused, because an empty page
// would look like an answer. Items stand in the order of the sort key and then of what tells them
// apart, and a cursor names both, so none that stays is skipped or shown twice. Costs a look at
// each item, and a sort.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/filter.h"
#include "api/router.h"
#include "base/result.h"
#include "model/document.h"

namespace muster::api {

// Of what is on one page of any list, about: a page ends there and the next one goes on.
inline constexpr std::size_t kMostPageBytes = 4'000'000;

// What a list has: all of it, or the ids, and each item when it is wanted. Where a page stands by
// id and has no filter only its own items are made.
struct Items {
  Items(std::vector<model::DocNode> all) : made(std::move(all)) {}  // NOLINT(google-explicit-*)
  Items(std::vector<std::string> keys, std::function<model::DocNode(std::size_t)> make)
      : ids(std::move(keys)), item(std::move(make)) {}

  std::vector<model::DocNode> made;
  std::vector<std::string> ids;
  std::function<model::DocNode(std::size_t)> item;
};

class Selection {
 public:
  struct Wish {
    std::string filter{}, sort{}, cursor{}, fields{};
    std::size_t limit = 200;
  };
  static Result<Selection> Make(const Operation& operation, Wish wish);

  // {nodes: [...], next, revision}
  Result<model::DocNode> Page(Items items, std::uint64_t revision) const;

  // For lists that are read piece by piece.
  bool Holds(const model::DocNode& item) const;
  model::DocNode Shown(model::DocNode item) const;  // the fields that are wanted
  model::DocNode Answer(std::vector<model::DocNode> items, const std::string& next,
                        std::uint64_t revision) const;
  // The number that the cursor is; none: from the beginning.
  Result<std::optional<std::uint64_t>> NumberInCursor() const;
  std::size_t limit() const { return wish_.limit; }
  const std::string& sort() const { return wish_.sort; }

 private:
  struct Condition : Comparison {
    Key at;
  };
  struct Cursor {
    std::string key, id;
  };
  Result<std::optional<Cursor>> ReadCursor() const;
  bool Before(std::string_view a, std::string_view a_id, std::string_view b,
              std::string_view b_id) const;
  std::vector<model::DocNode> Make(Items items, const std::optional<Cursor>& cursor) const;
  Result<void> ReadFilter();
  Result<void> ReadSort();
  Result<Condition> ReadCondition(Comparison words) const;
  std::optional<Key> Find(std::string_view name) const;
  tl::unexpected<Error> Unknown(const char* parameter, std::string_view name) const;
  static bool Holds(const Condition& condition, const model::DocNode& item);
  static bool Meets(const Condition& condition, std::string_view text);

  const Operation* operation_ = nullptr;
  Wish wish_;
  std::vector<Condition> conditions_;
  Key sort_, id_;
  bool descending_ = false;
};

// "n2" before "n10", and "a/b" right behind "a".
int NaturalOrder(std::string_view a, std::string_view b);

}  // namespace muster::api
