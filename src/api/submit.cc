#include "api/submit.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "api/jobs.h"
#include "control/plan.h"
#include "control/view_parts.h"
#include "model/job_codec.h"
#include "model/problems.h"
#include "model/spec_codec.h"

namespace muster::api {

using model::JobNumber;
using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

using Broken = control::Submission::Broken;

struct Jobs {
  std::vector<model::Job> all;
  std::vector<std::string> paths;  // where each is in the body
  std::vector<model::AmountsAt> amounts;
  std::vector<Broken> broken;
  std::optional<Error> mistakes;  // of the files themselves
};

// Whether the path is that of the part, or of something in it.
bool IsIn(std::string_view path, std::string_view part) {
  if (part.empty() || path == part) return true;
  return path.starts_with(part) && (path[part.size()] == '.' || path[part.size()] == '[');
}

// Which jobs the mistakes are in, so that the others can be looked at further. Where that cannot be
// told nothing can.
bool FindBroken(const Error& mistakes, Jobs& jobs) {
  for (const auto& mistake : mistakes.all) {
    bool found = false;
    for (std::size_t i = 0; i < jobs.paths.size() && !found; ++i) {
      found = !mistake.path.empty() && IsIn(mistake.path, jobs.paths[i]);
      if (!found) continue;
      const auto queue = jobs.paths[i] + (jobs.paths[i].empty() ? "queue" : ".queue");
      if (IsIn(mistake.path, queue)) jobs.broken[i] = Broken::kQueueToo;
      if (jobs.broken[i] == Broken::kNo) jobs.broken[i] = Broken::kYes;
    }
    if (!found) return false;
  }
  return true;
}

// The error: what is no list of jobs at all.
Result<Jobs> DecodeJobs(const std::string& body) {
  auto decoded = model::DecodeSpec(body);
  const bool wrong = decoded.problems.HasErrors();
  Jobs jobs{std::move(decoded.spec.jobs),
            std::move(decoded.job_paths),
            std::move(decoded.amounts),
            {},
            {}};
  jobs.broken.resize(jobs.all.size());
  if (wrong) {
    jobs.mistakes = model::ToError(decoded.problems);
    const bool all = !decoded.problems.Full() && decoded.spec.queues.empty();
    if (!all || !FindBroken(*jobs.mistakes, jobs)) return tl::unexpected(*jobs.mistakes);
    return jobs;
  }
  if (jobs.all.empty() || !decoded.spec.queues.empty()) {
    return Fail(ErrorCode::kInvalid, "this is not a job file",
                "`muster queue apply` takes queues; a job has a name and a command");
  }
  return jobs;
}

// Both in one answer, in the order of the body.
Error Together(const Error& mistakes, const Error& faults, const std::vector<std::string>& paths) {
  std::vector<std::pair<std::size_t, Error>> all;
  const auto add = [&](const Error& from) {
    for (const auto& one : from.all.empty() ? std::vector<Error>{from} : from.all) {
      std::size_t job = 0;
      while (job < paths.size() && !IsIn(one.path, paths[job])) ++job;
      all.emplace_back(job, one);
    }
  };
  add(mistakes);
  add(faults);
  std::stable_sort(all.begin(), all.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  Error error = all.front().second;
  error.code = ErrorCode::kInvalid;
  error.message += fmt::format(", and {} more", all.size() - 1);
  for (auto& [job, one] : all) error.all.push_back(std::move(one));
  return error;
}

tl::unexpected<Error> TooMany() {
  return Fail(ErrorCode::kUnavailable, "too many plans are being made", "try again in a moment");
}

using Making = std::function<Result<std::shared_ptr<control::Trial>>(Controller&, const Access&)>;

// The state is copied when its turn has come, not before: so however many wait, there is one copy,
// which is as large as the state itself. The plan is made, and answered, on the worker's thread.
Result<void> TryOut(Desk& desk, Worker& worker, const Call& call, Making make) {
  const auto plan = [&desk, call, make = std::move(make)] {
    if (call.exchange->gone()) return;
    auto copied = std::make_shared<std::promise<std::shared_ptr<control::Trial>>>();
    auto copy = copied->get_future();
    desk.Begin(call,
               [copied = std::move(copied), &make](Controller& control,
                                                   const Access& access) -> Result<void> {
                 auto trial = make(control, access);
                 if (!trial) return tl::unexpected(trial.error());
                 copied->set_value(std::move(*trial));
                 return {};
               });
    try {
      auto made = copy.get()->Run();
      if (made) return ReplyNode(*call.exchange, *made, 200);
      ReplyError(*call.exchange, made.error());
    } catch (const std::future_error&) {
      // Refused, and answered so; or the daemon stops.
    }
  };
  return worker.Do(plan, call.caller.user) ? Result<void>() : TooMany();
}

// The account that the jobs run as, when the caller may submit all of them. Queues that are not
// there for it are found with the other mistakes.
Result<control::Caller::Account> MayHave(const Access& access, const Call& call,
                                         const std::vector<model::Job>& jobs) {
  auto account = AccountOf(call);
  if (!account) return account;
  for (const auto& job : jobs) {
    if (access.On(job.queue) == control::Role::kNone) continue;
    if (auto may = access.MaySubmit(job.queue); !may) return tl::unexpected(may.error());
    auto may = access.MayPrioritize(job.queue, job.priority);
    if (!may) return tl::unexpected(may.error());
  }
  return account;
}

// For the trail: one for each queue, so that its admins can read it. A request that is repeated
// changes nothing and leaves none.
std::vector<Trace> TracesOf(const std::vector<model::Job>& jobs,
                            const std::vector<JobNumber>& numbers, JobNumber first_new) {
  struct OfQueue {
    std::size_t first = 0, last = 0;
    std::int64_t count = 0;
  };
  std::map<std::string, OfQueue> queues;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (numbers[i] < first_new) continue;  // made by an earlier request with the same key
    auto& of = queues[jobs[i].queue];
    if (of.count++ == 0) of.first = i;
    of.last = i;
  }
  std::vector<Trace> traces;
  for (const auto& [queue, of] : queues) {
    std::string object = "job " + std::to_string(numbers[of.first]);
    if (of.count > 1) object += " to " + std::to_string(numbers[of.last]);
    DocNode after = MapNode();
    Put(after, "queue", TextNode(queue));
    Put(after, "jobs", NumberNode(of.count));
    Put(after, "first_job", TextNode(std::to_string(numbers[of.first])));
    Put(after, "last_job", TextNode(std::to_string(numbers[of.last])));
    control::MaskEnv(Put(after, "first", model::JobToNode(jobs[of.first])));
    traces.push_back({std::move(object), queue, "", model::WriteJson(after)});
  }
  return traces;
}

}  // namespace

void SubmitJobs(Desk& desk, const Call& asked) {
  auto decoded = DecodeJobs(asked.request->body);
  if (!decoded) return ReplyError(*asked.exchange, decoded.error());
  Call call = asked;
  const auto key = KeyOf(call);
  if (!key.empty()) call.digest = DigestOf(call);  // once: the body may be large
  desk.Change(
      call, 201,
      [call, all = std::move(*decoded), key](Controller& control,
                                             const Access& access) -> Result<Changed> {
        const auto& [jobs, paths, amounts, broken, mistakes] = all;
        const auto account = MayHave(access, call, jobs);
        if (!account && !mistakes) return tl::unexpected(account.error());
        std::vector<control::Submission> submissions;
        submissions.reserve(jobs.size());
        for (std::size_t i = 0; i < jobs.size(); ++i) {
          control::Submission one;
          one.spec = jobs[i];
          one.user = access.caller().user;
          if (account) {
            one.uid = account->uid;
            one.gid = account->gid;
          }
          one.held = call.Flag("held");
          one.dry_run = call.dry_run() || mistakes;
          one.access = &access;
          one.at = paths[i];
          one.amounts = amounts[i];
          one.broken = broken[i];
          if (i == 0 && !mistakes) {
            one.key = key;
            one.digest = call.digest;
          }
          submissions.push_back(std::move(one));
        }
        const auto first_new = control.state().next_job();
        auto made = control.SubmitAll(std::move(submissions));
        if (mistakes) {
          return tl::unexpected(made ? *mistakes : Together(*mistakes, made.error(), paths));
        }
        if (!made) return tl::unexpected(made.error());
        DocNode list = ListNode();
        for (std::size_t i = 0; i < jobs.size(); ++i) {
          DocNode one = MapNode();
          Put(one, "id", TextNode(std::to_string((*made)[i])));
          Put(one, "name", TextNode(jobs[i].name));
          Put(one, "queue", TextNode(jobs[i].queue));
          if (const auto& range = jobs[i].array) {
            Put(one, "tasks", NumberNode(range->last - range->first + 1));
          }
          list.children.push_back(std::move(one));
        }
        DocNode node = MapNode();
        Put(node, "jobs", std::move(list));
        if (call.dry_run()) Put(node, "dry_run", model::BoolNode(true));
        Changed changed{std::move(node), TracesOf(jobs, *made, first_new)};
        changed.remembered = true;
        return changed;
      });
}

void PlanJob(Desk& desk, Worker& worker, const Call& call) {
  auto jobs = DecodeJobs(call.request->body);
  if (!jobs) return ReplyError(*call.exchange, jobs.error());
  if (jobs->mistakes) return ReplyError(*call.exchange, *jobs->mistakes);
  if (jobs->all.size() != 1 || jobs->all.front().array) {
    return ReplyError(*call.exchange, {ErrorCode::kInvalid, "a plan is for one job",
                                       "submit several with --dry-run to check them"});
  }
  const auto check = [call, jobs = std::move(jobs->all), at = jobs->paths.front(),
                      amounts = jobs->amounts.front()](Controller& control,
                                                       const Access& access) -> Result<model::Job> {
    auto account = MayHave(access, call, jobs);
    if (!account) return tl::unexpected(account.error());
    control::Submission submission;
    submission.spec = jobs.front();
    submission.user = access.caller().user;
    submission.access = &access;
    submission.at = at;
    submission.amounts = amounts;
    submission.dry_run = true;
    if (auto sound = control.Submit(submission); !sound) return tl::unexpected(sound.error());
    return jobs.front();
  };
  desk.Begin(
      call, [&desk, &worker, call, check](Controller& now, const Access& asks) -> Result<void> {
        if (auto sound = check(now, asks); !sound) return tl::unexpected(sound.error());
        // Once more when its turn has come: the queue may be gone by then.
        return TryOut(desk, worker, call,
                      [check](Controller& control,
                              const Access& access) -> Result<std::shared_ptr<control::Trial>> {
                        auto job = check(control, access);
                        if (!job) return tl::unexpected(job.error());
                        return std::make_shared<control::Trial>(control, *job, access);
                      });
      });
}

namespace {

Result<state::JobRecord> WaitingJob(Controller& control, const Access& access, const Call& call) {
  auto job = RecordOf(control, access, TaskToExplain(control, access, call.Path("job")));
  if (!job) return job;
  const auto phase = state::PhaseOf(*job);
  if (phase == state::Phase::kWaiting || phase == state::Phase::kHeld ||
      phase == state::Phase::kPaused) {
    return job;
  }
  return Fail(ErrorCode::kConflict,
              "job " + std::to_string(job->id) + " is " + std::string(Name(phase)) +
                  ": a plan is for one that waits",
              "`muster describe` tells where it is");
}

}  // namespace

void PlanWaitingJob(Desk& desk, Worker& worker, const Call& call) {
  desk.Begin(call, [&desk, &worker, call](Controller& now, const Access& asks) -> Result<void> {
    if (auto waits = WaitingJob(now, asks, call); !waits) return tl::unexpected(waits.error());
    return TryOut(desk, worker, call,
                  [call](Controller& control,
                         const Access& access) -> Result<std::shared_ptr<control::Trial>> {
                    auto job = WaitingJob(control, access, call);
                    if (!job) return tl::unexpected(job.error());
                    return std::make_shared<control::Trial>(control, *job, access);
                  });
  });
}

}  // namespace muster::api
