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
constexpr std::size_t kRowsAtOnce = 200;
constexpr std::size_t kMostRows = 5'000;  // of history, looked at for one page

// By number the page is found where it begins; for any other order all have to be looked at.
template <typename Wanted>
void Collect(const state::State& state, const Order& order, const std::string& cursor,
             std::size_t most, std::vector<Entry>& entries, const Wanted& wanted) {
  const auto& jobs = state.jobs();
  const auto add = [&](const JobRecord& job) {
    if (wanted(job)) entries.push_back({KeyOf(order, job), &job});
  };
  if (order.key != "id") {
    entries.reserve(jobs.size());
    for (const auto& [id, job] : jobs) add(job);
    return;
  }
  const auto at = model::ParseWhole(cursor.substr(0, cursor.find('.')));
  const auto last = static_cast<JobNumber>(at.value_or(0));
  if (order.descending) {
    auto from = std::make_reverse_iterator(at ? jobs.lower_bound(last) : jobs.end());
    for (; from != jobs.rend() && entries.size() < most; ++from) add(from->second);
  } else {
    auto from = at ? jobs.upper_bound(last) : jobs.begin();
    for (; from != jobs.end() && entries.size() < most; ++from) add(from->second);
  }
}

JobNumber NumberIn(const std::string& cursor) {
  return static_cast<JobNumber>(model::ParseWhole(cursor.substr(0, cursor.find('.'))).value_or(0));
}

struct Old {
  std::vector<JobRecord> jobs;  // newest first
  JobNumber down_to = 0;        // older ones were not looked at; 0: there are none
};

// What only history has, from where the page begins. However few of them the caller may see, one
// page looks at so many rows and no more; the next goes on from there.
template <typename Seen, typename Wanted>
Result<Old> FromHistory(Controller& control, state::HistoryQuery query, std::size_t most,
                        const Seen& seen, const Wanted& wanted) {
  Old old;
  query.limit = kRowsAtOnce;
  for (std::size_t looked = 0; old.jobs.size() < most;) {
    auto rows = control.store().History(query);
    if (!rows) return tl::unexpected(rows.error());
    for (const auto& row : *rows) {
      query.before = row.job;
      if (control.state().Find(row.job) != nullptr || !seen(row)) continue;
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

}  // namespace

void ListJobs(Desk& desk, const Call& call) {
  auto filter = ParseFilter(call.Text("filter"));
  if (!filter) return ReplyError(*call.exchange, filter.error());
  if (auto few = CheckFields(call.Text("fields")); !few) {
    return ReplyError(*call.exchange, few.error());
  }
  for (const char* key : {"user", "phase"}) {
    if (const auto value = call.Text(key); !value.empty()) {
      filter->push_back({key, Condition::Op::kIs, value, 0});
    }
  }
  const auto order = ParseOrder(call.Text("sort"));
  const bool all = call.Flag("all");
  if (all && (order.key != "id" || !order.descending)) {
    return ReplyError(*call.exchange,
                      {ErrorCode::kUsage, "jobs that have ended are listed newest first only",
                       "leave out `all`, or sort by -id or -created_at", "sort"});
  }
  desk.Read(call,
            [call, filter = std::move(*filter), order, all](
                Controller& control, const Access& access) -> Result<Answer> {
              const auto queue = call.Text("queue"), below = queue + "/";
              const auto cursor = call.Text("cursor"), fields = call.Text("fields");
              const auto limit = static_cast<std::size_t>(call.Number("limit", kDefaultLimit));
              const auto wanted = [&](const JobRecord& job) {
                const auto& of = job.spec->queue;
                return (queue.empty() || of == queue || of.starts_with(below)) &&
                       access.Sees(job.user, of) && Holds(filter, job);
              };
              std::vector<Entry> entries;
              Collect(control.state(), order, cursor, limit + 1, entries,
                      [&](const JobRecord& job) { return (all || !job.ending) && wanted(job); });
              Old old;
              if (all) {
                state::HistoryQuery query;
                query.queue = queue;
                query.user = call.Text("user");
                query.before = NumberIn(cursor);
                auto found = FromHistory(
                    control, query, limit + 1,
                    [&](const auto& row) { return access.Sees(row.user, row.queue); }, wanted);
                if (!found) return tl::unexpected(found.error());
                old = std::move(*found);
                // Below that there may be some that are between those of the state.
                std::erase_if(entries, [&](const auto& one) { return one.job->id < old.down_to; });
                for (const auto& job : old.jobs) entries.push_back({KeyOf(order, job), &job});
              }
              auto page = Page(std::move(entries), order, cursor, limit + 1);
              if (!page) return tl::unexpected(page.error());
              std::string next;
              if (page->size() > limit) {
                page->resize(limit);
                next = CursorOf(page->back());
              } else if (old.down_to != 0) {
                next = CursorAt(old.down_to);
              }
              DocNode list = ListNode();
              for (const auto& entry : *page) {
                auto view = control::JobView(control, access, *entry.job, false);
                list.children.push_back(fields.empty() ? std::move(view) : Pick(view, fields));
              }
              DocNode node = MapNode();
              Put(node, "jobs", std::move(list));
              if (!next.empty()) Put(node, "next", TextNode(next));
              Put(node, "revision",
                  NumberNode(static_cast<std::int64_t>(control.state().revision())));
              return node;
            });
}

}  // namespace muster::api
