#include "api/runs.h"

#include "api/jobs.h"
#include "control/runs.h"

namespace muster::api {
namespace {

// A page with a filter looks at all of them, between two turns of the scheduler.
constexpr std::size_t kMostListed = 5'000;

Result<void> Kept(Controller& control) {
  if (control.runs() != nullptr) return {};
  return Fail(ErrorCode::kUnavailable, "this daemon keeps no runs",
              "its log says why runs.db could not be opened");
}

// How a job ended that is not in the state any more, where its run was not told.
bool FillEnd(Controller& control, state::RunHead& head) {
  if (!head.end.empty() || control.state().Find(head.job) != nullptr) return true;
  state::HistoryQuery query;
  query.job = head.job;
  const auto rows = control.store().History(query);
  if (!rows || rows->empty()) return false;
  const auto job = state::DecodeJobRecord(rows->front().body);
  head.end = rows->front().end;
  head.ran_ms = job ? job->ran_ms : 0;
  return true;
}

}  // namespace

void ListRuns(Desk& desk, const Call& call) {
  desk.List(call, [](Controller& control, const Access& access) -> Result<Items> {
    if (auto kept = Kept(control); !kept) return tl::unexpected(kept.error());
    std::vector<std::string> ids;
    std::vector<state::RunHead> heads;
    for (const auto job : control.runs()->Latest(kMostListed)) {
      auto head = control.runs()->Head(job);
      if (!head || !access.Sees(head->user, head->queue) || !FillEnd(control, *head)) continue;
      ids.push_back(std::to_string(job));
      heads.push_back(std::move(*head));
    }
    return Items(std::move(ids), [&control, heads = std::move(heads)](std::size_t at) {
      return control::RunView(heads[at], control.state().Find(heads[at].job), control.NowMs());
    });
  });
}

void GetRun(Desk& desk, const Call& call) {
  desk.Read(call, [call](Controller& control, const Access& access) -> Result<Answer> {
    if (auto kept = Kept(control); !kept) return tl::unexpected(kept.error());
    const auto job = RecordOf(control, access, call.Path("job"));
    if (!job) return tl::unexpected(job.error());
    const auto run = control.runs()->Find(job->id);
    if (!run) {
      return Fail(ErrorCode::kNotFound, "job " + call.Path("job") + " has reported nothing",
                  "`muster runs` shows those that have; docs/contract.md says how to report");
    }
    return control::RunDetailView(*run, *job, access, control.NowMs());
  });
}

}  // namespace muster::api
