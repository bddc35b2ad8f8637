#include <algorithm>
#include <iterator>

#include "api/jobs.h"
#include "api/listing.h"
#include "control/views.h"
#include "model/fields.h"

namespace muster::api {

using model::JobNumber;
using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;
using state::JobRecord;

namespace {

constexpr std::int64_t kDefaultLimit = 200;
constexpr std::string_view kSealed = "x";
constexpr std::size_t kRowsAtOnce = 200;
constexpr std::size_t kMostRows = 5'000;     // of history, looked at for one page
constexpr std::size_t kMostLooked = 20'000;  // of the state: a few milliseconds
constexpr std::size_t kBytesEach = 1'000;    // of a job without its labels

struct JobQuery {
  Call call;
  std::vector<Condition> filter;
  Order order;
  std::optional<Place> after;
  std::string queue, below;
  bool all = false;

  bool Wants(const Access& access, const JobRecord& job) const {
    const auto& of = job.spec->queue;
    return (queue.empty() || of == queue || of.starts_with(below)) && access.Sees(job.user, of) &&
           Holds(filter, job);
  }
};

// Whoever chooses a phase of those that have ended wants to see them.
bool AsksForEnded(const std::vector<Condition>& filter) {
  return std::any_of(filter.begin(), filter.end(), [](const auto& one) {
    if (one.of != JobKey::kPhase || one.op != Comparison::Op::kIs) return false;
    return std::any_of(state::kPhases.begin(), state::kPhases.end(), [&](const auto phase) {
      return state::Ended(phase) && state::Name(phase) == one.value;
    });
  });
}

Result<JobQuery> ParseQuery(const Call& call, const Sealer& sealer) {
  JobQuery query{call, {}, ParseOrder(call.Text("sort")), {}, call.Text("queue"), {}, false};
  query.below = query.queue + "/";
  auto filter = ParseFilter(call.Text("filter"));
  if (!filter) return tl::unexpected(filter.error());
  query.filter = std::move(*filter);
  for (const char* key : {"user", "phase"}) {
    if (const auto value = call.Text(key); !value.empty()) {
      auto condition = ParseCondition({value, key, Comparison::Op::kIs, value});
      if (!condition) return tl::unexpected(condition.error());
      query.filter.push_back(std::move(*condition));
    }
  }
  query.all = call.Flag("all") || AsksForEnded(query.filter);
  if (auto known = CheckFields(call.operation(), call.Text("fields")); !known) {
    return tl::unexpected(known.error());
  }
  auto cursor = call.Text("cursor");
  if (cursor.starts_with(kSealed)) {
    cursor = sealer.Open(cursor.substr(kSealed.size())).value_or("sealed by another");
  }
  auto after = ParseCursor(cursor, query.order);
  if (!after) return tl::unexpected(after.error());
  query.after = std::move(*after);
  if (query.all && (query.order.by != state::SortBy::kNumber || !query.order.descending)) {
    return tl::unexpected(
        Error{ErrorCode::kUsage, "jobs that have ended are listed newest first only",
              "sort by -id or -created_at, or leave out `all` and phases of the end", "sort"});
  }
  return query;
}

struct Found {
  std::vector<const JobRecord*> jobs;
  const JobRecord* last = nullptr;  // further ones were not looked at; or null
};

// However few are wanted, one page looks at so many and no more; the next goes on from there.
template <typename Wanted>
Found FromState(const state::State& state, const JobQuery& query, std::size_t most,
                const Wanted& wanted) {
  Found found;
  std::size_t looked = 0, bytes = 0;
  const auto look = [&](const JobRecord& job) {
    if (wanted(job)) {
      found.jobs.push_back(&job);
      bytes += kBytesEach;
      for (const auto& [key, value] : job.spec->labels) bytes += key.size() + value.size();
    }
    if (++looked == kMostLooked || bytes >= kMostPageBytes) found.last = &job;
    return found.last == nullptr && found.jobs.size() < most;
  };
  const auto& jobs = state.jobs();
  const auto& after = query.after;
  if (query.order.by != state::SortBy::kNumber) {
    state.order().Walk(query.order.by, query.order.descending, after ? &*after : nullptr,
                       [&](JobNumber id) { return look(*state.Find(id)); });
  } else if (query.order.descending) {
    auto at = std::make_reverse_iterator(after ? jobs.lower_bound(after->job) : jobs.end());
    while (at != jobs.rend() && look(at->second)) ++at;
  } else {
    auto at = after ? jobs.upper_bound(after->job) : jobs.begin();
    while (at != jobs.end() && look(at->second)) ++at;
  }
  return found;
}

struct Old {
  std::vector<JobRecord> jobs;  // newest first
  JobNumber down_to = 0;        // older ones were not looked at; 0: there are none
};

// What only history has, bounded in the same way.
template <typename Wanted>
Result<Old> FromHistory(Controller& control, const Access& access, const JobQuery& asked,
                        std::size_t most, const Wanted& wanted) {
  Old old;
  state::HistoryQuery query;
  query.queue = asked.queue;
  query.user = asked.call.Text("user");
  query.before = asked.after ? asked.after->job : 0;
  query.limit = kRowsAtOnce;
  for (std::size_t looked = 0; old.jobs.size() < most;) {
    auto rows = control.store().History(query);
    if (!rows) return tl::unexpected(rows.error());
    for (const auto& row : *rows) {
      query.before = row.job;
      if (control.state().Find(row.job) != nullptr || !access.Sees(row.user, row.queue)) continue;
      auto job = state::DecodeJobRecord(row.body);
      if (job && wanted(*job)) old.jobs.push_back(std::move(*job));
      if (old.jobs.size() == most) break;
    }
    if (old.jobs.size() < most && rows->size() < kRowsAtOnce) return old;
    looked += rows->size();
    if (looked >= kMostRows) break;
  }
  old.down_to = query.before;
  return old;
}

// An empty page of a queue that is not there would look like an answer. Jobs that have ended may be
// of one that was deleted since.
Result<void> CheckQueue(const Controller& control, const Access& access, const JobQuery& query) {
  std::string name = query.queue;
  for (const auto& one : query.filter) {
    if (one.of == JobKey::kQueue && one.op == Comparison::Op::kIs) name = one.value;
  }
  if (name.empty() || query.all) return {};
  const auto& queues = control.state().queues();
  const bool there = std::any_of(queues.begin(), queues.end(), [&](const auto& queue) {
    return queue.name == name && access.On(name) >= control::Role::kViewer;
  });
  if (there) return {};
  auto error = control::NoQueue(queues, &access, name);
  error.code = ErrorCode::kNotFound;
  return tl::unexpected(std::move(error));
}

struct JobPage {
  std::vector<const JobRecord*> jobs;
  std::vector<JobRecord> old;  // those of them that only history has
  std::string next;
};

Result<JobPage> PageOf(Controller& control, const Access& access, const JobQuery& query,
                       const Sealer& sealer) {
  const auto limit = static_cast<std::size_t>(query.call.Number("limit", kDefaultLimit));
  const auto wanted = [&](const JobRecord& job) { return query.Wants(access, job); };
  auto found = FromState(control.state(), query, limit + 1, [&](const JobRecord& job) {
    return (query.all || !job.ending) && wanted(job);
  });
  JobPage page{std::move(found.jobs), {}, {}};
  if (found.last != nullptr) {
    page.next = CursorOf(query.order, *found.last);
    // Where the page ends is not the caller's to know when it stands at what it may not see.
    if (!access.Sees(found.last->user, found.last->spec->queue)) {
      page.next = std::string(kSealed) + sealer.Seal(page.next);
    }
  }
  if (query.all) {
    auto old = FromHistory(control, access, query, limit + 1, wanted);
    if (!old) return tl::unexpected(old.error());
    page.old = std::move(old->jobs);
    for (const auto& job : page.old) page.jobs.push_back(&job);
    std::sort(page.jobs.begin(), page.jobs.end(),
              [](const auto* a, const auto* b) { return a->id > b->id; });
    // Further down only one of the two was looked at, and some of the other may be between.
    const auto floor = std::max(old->down_to, found.last != nullptr ? found.last->id : 0);
    std::erase_if(page.jobs, [&](const auto* job) { return job->id < floor; });
    if (floor != 0) page.next = CursorAt(floor);
  }
  if (page.jobs.size() > limit) {
    page.jobs.resize(limit);
    page.next = CursorOf(query.order, *page.jobs.back());
  }
  if (page.jobs.empty() && page.next.empty()) {
    if (auto good = CheckQueue(control, access, query); !good) return tl::unexpected(good.error());
  }
  return page;
}

}  // namespace

void ListJobs(Desk& desk, const Call& call) {
  auto query = ParseQuery(call, desk.sealer());
  if (!query) return ReplyError(*call.exchange, query.error());
  desk.Read(call,
            [&desk, query = std::move(*query)](Controller& control,
                                               const Access& access) -> Result<Answer> {
              const auto page = PageOf(control, access, query, desk.sealer());
              if (!page) return tl::unexpected(page.error());
              const auto fields = query.call.Text("fields");
              DocNode list = ListNode();
              for (const auto* job : page->jobs) {
                auto view = control::JobView(control, access, *job, false);
                list.children.push_back(fields.empty() ? std::move(view) : Pick(view, fields));
              }
              DocNode node = MapNode();
              Put(node, "jobs", std::move(list));
              if (!page->next.empty()) Put(node, "next", TextNode(page->next));
              Put(node, "revision",
                  NumberNode(static_cast<std::int64_t>(control.state().revision())));
              return node;
            });
}

}  // namespace muster::api
