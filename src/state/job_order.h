// JobOrder: the jobs in every order that lists are asked for, so that a page of a hundred thousand
// is read where it begins instead of found by looking at all of them.
//
// One tree a key; what is equal is in the order of the numbers. Texts are not copied: they belong
// to the record and its spec, so a record leaves before its spec is replaced or it is destroyed,
// and does not move in memory meanwhile. Add and Remove cost a few microseconds, a job about
// 300 bytes.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "state/records.h"

namespace muster::state {

enum class SortBy : std::uint8_t { kNumber, kName, kUser, kQueue, kPriority, kGpus };

// What all its roles ask for, in thousandths of a GPU.
std::int64_t GpuMilli(const model::Job& spec);

class JobOrder {
 public:
  using Value = std::variant<std::int64_t, std::string>;
  struct Place {  // of a job in an order, whether it is still there or not
    Value value;
    JobNumber job = 0;
  };

  explicit JobOrder(const std::map<JobNumber, JobRecord>& jobs);
  JobOrder(const JobOrder&) = delete;
  JobOrder& operator=(const JobOrder&) = delete;
  JobOrder(JobOrder&&) = default;
  JobOrder& operator=(JobOrder&&) = default;
  ~JobOrder() = default;

  void Add(const JobRecord& job);
  void Remove(const JobRecord& job);

  static Value ValueOf(SortBy by, const JobRecord& job);

  // Shows the numbers behind `after` (null: from the beginning) until `visit` says false.
  template <typename Visit>
  void Walk(SortBy by, bool descending, const Place* after, const Visit& visit) const {
    switch (by) {
      case SortBy::kNumber:
        return;  // State::jobs() is in that order
      case SortBy::kName:
        return In(by_name_, descending, after, visit);
      case SortBy::kUser:
        return In(by_user_, descending, after, visit);
      case SortBy::kQueue:
        return In(by_queue_, descending, after, visit);
      case SortBy::kPriority:
        return In(by_priority_, descending, after, visit);
      case SortBy::kGpus:
        return In(by_gpus_, descending, after, visit);
    }
  }

 private:
  using Texts = std::set<std::pair<std::string_view, JobNumber>>;
  using Numbers = std::set<std::pair<std::int64_t, JobNumber>>;

  static std::pair<std::string_view, JobNumber> Key(const Texts& /*of*/, const Place& place) {
    return {std::get<std::string>(place.value), place.job};
  }
  static std::pair<std::int64_t, JobNumber> Key(const Numbers& /*of*/, const Place& place) {
    return {std::get<std::int64_t>(place.value), place.job};
  }
  template <typename Set, typename Visit>
  static void In(const Set& set, bool descending, const Place* after, const Visit& visit) {
    if (descending) {
      auto at = std::make_reverse_iterator(after != nullptr ? set.lower_bound(Key(set, *after))
                                                            : set.end());
      while (at != set.rend() && visit(at->second)) ++at;
    } else {
      auto at = after != nullptr ? set.upper_bound(Key(set, *after)) : set.begin();
      while (at != set.end() && visit(at->second)) ++at;
    }
  }

  Texts by_name_, by_user_, by_queue_;
  Numbers by_priority_, by_gpus_;
};

}  // namespace muster::state
