// Jobs that are handed in: what is wrong with them, all of it, and what a repeated request made.
#include <fmt/format.h>

#include <algorithm>

#include "control/controller.h"
#include "control/view_parts.h"
#include "model/vocabulary.h"

namespace muster::control {

using model::Follows;

namespace {

constexpr std::size_t kMostSpecBytes = std::size_t{128} << 10;
constexpr std::size_t kMostLabelBytes = std::size_t{8} << 10;
constexpr std::size_t kMostArrayBytes = std::size_t{64} << 20;
constexpr std::size_t kMostFollowed = 100;
constexpr std::size_t kFaultsTold = 100;
constexpr std::size_t kMostFollowedAtOnce = 10'000;     // by all jobs of a request
constexpr std::int64_t kMostWorkersAtOnce = 1'000'000;  // likewise: each is looked at

}  // namespace

Result<std::vector<Follows>> Controller::ResolveFollows(const Submission& submission) {
  std::vector<Follows> follows;
  for (const auto& after : submission.spec.after) {
    auto id = Resolve(after.job, {submission.user, submission.access, true});
    if (!id) {
      return Fail(ErrorCode::kInvalid, "`after: " + after.job + "`: " + id.error().message,
                  "submit that job first; a job follows jobs that are known");
    }
    const auto* job = state_.Find(*id);
    const auto* array = state_.FindArray(*id);
    if ((job != nullptr && !job->ending) || (array != nullptr && !array->Ended())) {
      follows.push_back({*id, after.condition});
      continue;
    }
    // It has ended already: either that is what was wanted, or it can never be.
    bool good = false;
    if (array != nullptr) {
      good = array->succeeded == array->tasks;
    } else if (job != nullptr) {
      good = job->ending->end == model::End::kSucceeded;
    } else {
      state::HistoryQuery query;
      query.job = *id;
      auto rows = ports_.store.History(query);
      if (!rows) return tl::unexpected(rows.error());
      const Search search{submission.user, submission.access};
      if (rows->empty() || !search.Sees(rows->front().user, rows->front().queue)) {
        auto none = NoJob(after.job);
        none.code = ErrorCode::kInvalid;
        return tl::unexpected(std::move(none));
      }
      good = rows->front().end == "succeeded";
    }
    const bool wanted = after.condition == model::AfterCondition::kAny ||
                        (after.condition == model::AfterCondition::kOk) == good;
    if (!wanted) {
      return Fail(ErrorCode::kConflict,
                  "`after: " + after.job + ":" + std::string(NameOf(after.condition)) + "`: job " +
                      std::to_string(*id) + (good ? " has succeeded" : " has not succeeded"),
                  "run that job again first, or take `:any`");
    }
  }
  return follows;
}

namespace {

tl::unexpected<Error> Wrong(const std::string& path, std::string message, std::string hint) {
  Error error{ErrorCode::kInvalid, std::move(message), std::move(hint)};
  error.path = path;
  return tl::unexpected(std::move(error));
}

// It is kept whole in memory, in the journal and in history, for an array with every change of each
// of its tasks.
Result<void> CheckSize(const model::Job& spec) {
  std::size_t bytes = 0;
  for (const auto& word : spec.command) bytes += word.size();
  const auto command_bytes = bytes;
  for (const auto* texts : {&spec.env, &spec.labels}) {
    for (const auto& [key, value] : *texts) bytes += key.size() + value.size();
  }
  std::size_t label_bytes = 0;
  for (const auto& [key, value] : spec.labels) label_bytes += key.size() + value.size();
  if (label_bytes > kMostLabelBytes) {
    return Wrong("labels",
                 fmt::format("labels have {} bytes, at most {}", label_bytes, kMostLabelBytes),
                 "they are shown in every list; long texts are for `env` or a file");
  }
  const auto tasks =
      spec.array ? static_cast<std::size_t>(spec.array->last - spec.array->first + 1) : 1;
  if (bytes <= kMostSpecBytes && bytes * tasks <= kMostArrayBytes) return {};
  return Wrong(command_bytes > bytes / 2 ? "command" : "env",
               fmt::format("command, env and labels have {} bytes; at most {} for a job, and {} "
                           "for all tasks of an array together",
                           bytes, kMostSpecBytes, kMostArrayBytes),
               "put long values into a file that the command reads");
}

Result<void> CheckAfter(const model::Job& spec) {
  if (spec.after.size() <= kMostFollowed) return {};
  return Wrong(
      "after",
      fmt::format("it follows {} jobs, at most {} may be", spec.after.size(), kMostFollowed),
      "follow an array, or a job that follows the others");
}

Result<void> CheckKind(const model::Job& spec) {
  if (spec.kind != model::JobKind::kTune && spec.kind != model::JobKind::kServe) return {};
  return Wrong("kind", "kind: " + std::string(NameOf(spec.kind)) + " is not available yet",
               "use kind: train or kind: build");
}

Result<void> CheckCommand(const model::Job& spec) {
  if (spec.job_template.empty()) {
    if (!spec.command.empty()) return {};
    return Wrong("command", "the job has no command", "add `command: [python3, train.py]`");
  }
  if (spec.job_template != "jupyter") {
    return Wrong("template", "there is no template \"" + spec.job_template + "\"",
                 "`jupyter` is one; else give the command itself");
  }
  if (spec.command.empty() && spec.framework == model::Framework::kNone) return {};
  return Wrong("template", "template: jupyter brings its own command",
               "leave `command` and `framework` out, or the template");
}

// The engine knows those that some node has; another would be as good as not asked for.
Result<void> CheckCountables(const model::Job& spec, const state::State& state) {
  for (const auto& role : spec.roles) {
    for (const auto& [name, amount] : role.request.other) {
      const bool there = std::any_of(
          state.nodes().begin(), state.nodes().end(),
          [&name = name](const auto& node) { return node.second.node.other.contains(name); });
      if (amount == 0 || there) continue;
      return Wrong(
          "resources." + name,
          fmt::format("it can never run here: {} {} asked for, and no node has any", amount, name),
          "`muster nodes -o json` shows what there is, in `spec.resources`");
    }
  }
  return {};
}

}  // namespace

namespace {

// The key as this file has it: keys of `resources` may stand at the top, or in a role.
std::string KeyIn(const Submission& submission, const std::string& path) {
  using model::AmountsAt;
  constexpr std::string_view kResources = "resources.";
  const bool of_role = path == "workers" || path == "gpu_types" || path.starts_with(kResources);
  if (submission.amounts == AmountsAt::kRoles && of_role) {
    const auto& roles = submission.spec.roles;
    if (roles.size() != 1) return "roles";  // which of them is not told
    return fmt::format("roles.{}.{}", roles[0].name, path == "workers" ? "count" : path);
  }
  const bool top = submission.amounts == AmountsAt::kTop && path.starts_with(kResources);
  return top ? path.substr(kResources.size()) : path;
}

}  // namespace

// What is wrong with the job, all of it, and whom it follows but for those of `batch`, the names of
// jobs that come before it in the same request.
std::vector<Error> Controller::Faults(const Submission& submission,
                                      const std::set<std::string>& batch,
                                      std::vector<Follows>& follows) {
  using Broken = Submission::Broken;
  const auto& spec = submission.spec;
  std::vector<Error> faults;
  if (submission.broken == Broken::kQueueToo) return faults;
  const bool whole = submission.broken == Broken::kNo;
  for (auto* check : {CheckSize, CheckAfter, CheckKind, CheckCommand}) {
    if (!whole) break;
    if (auto sound = check(spec); !sound) faults.push_back(sound.error());
  }
  // A queue that may not be known of is answered as one that is not there.
  const bool hidden =
      submission.access != nullptr && submission.access->On(spec.queue) == Role::kNone;
  const bool has_queue = !hidden && engine_.cluster().queues().Find(spec.queue) != engine::kNone;
  if (!has_queue) faults.push_back(NoQueue(state_.queues(), submission.access, spec.queue));
  if (!whole) return faults;
  if (!spec.after.empty() && spec.after.size() <= kMostFollowed) {
    Submission known = submission;
    std::erase_if(known.spec.after, [&](const auto& after) { return batch.contains(after.job); });
    auto found = ResolveFollows(known);
    if (found) {
      follows = std::move(*found);
    } else {
      found.error().path = "after";
      faults.push_back(std::move(found.error()));
    }
  }
  if (auto there = CheckCountables(spec, state_); !there) faults.push_back(there.error());
  // Only a job that makes sense is held against the machines.
  if (!faults.empty()) return faults;
  if (auto admitted = engine_.Admit(spec, NowMs()); !admitted) {
    admitted.error().path = KeyIn(submission, admitted.error().path);
    faults.push_back(std::move(admitted.error()));
  }
  return faults;
}

Result<JobNumber> Controller::Submit(Submission submission) {
  std::vector<Submission> one;
  one.push_back(std::move(submission));
  auto made = SubmitAll(std::move(one));
  if (!made) return tl::unexpected(made.error());
  return made->front();
}

Result<const state::RequestRecord*> Controller::Repeated(const std::string& user,
                                                         const std::string& key,
                                                         const std::string& digest) const {
  const auto* known = key.empty() ? nullptr : state_.requests().Find(user, key);
  if (known == nullptr || known->IsOf(digest)) return known;
  Error error{ErrorCode::kConflict, "this Idempotency-Key was used for another request",
              "take a new key for a new request"};
  error.path = "Idempotency-Key";
  return tl::unexpected(std::move(error));
}

void Controller::Remember(model::RequestAnswered answered) { Emit(std::move(answered)); }

namespace {

JobNumber TasksOf(const model::Job& spec) {
  return spec.array ? static_cast<JobNumber>(spec.array->last - spec.array->first + 1) : 0;
}

// The numbers that they got: those of a request are given one after the other.
std::vector<JobNumber> NumbersFrom(JobNumber first, const std::vector<Submission>& submissions) {
  std::vector<JobNumber> numbers;
  for (const auto& submission : submissions) {
    numbers.push_back(first);
    first += 1 + TasksOf(submission.spec);
  }
  return numbers;
}

}  // namespace

Result<void> Controller::CheckAll(const std::vector<Submission>& submissions,
                                  std::vector<std::vector<Follows>>& follows) {
  std::set<std::string> batch;
  std::vector<Error> faults;
  for (std::size_t i = 0; i < submissions.size() && faults.size() < kFaultsTold; ++i) {
    const auto& submission = submissions[i];
    follows.emplace_back();
    for (auto& fault : Faults(submission, batch, follows.back())) {
      if (submissions.size() > 1) {
        fault.message = fmt::format("job {} of {} ({}): {}", i + 1, submissions.size(),
                                    submission.spec.name, fault.message);
      }
      const bool both = !submission.at.empty() && !fault.path.empty();
      fault.path = submission.at + (both ? "." : "") + fault.path;
      faults.push_back(std::move(fault));
    }
    batch.insert(submission.spec.name);
  }
  if (faults.empty()) return {};
  Error error = faults.front();
  if (submissions.size() > 1) error.message += "; none was accepted";
  error.all = std::move(faults);
  return tl::unexpected(std::move(error));
}

namespace {

// What all jobs of a request are together.
Result<void> CheckSums(const std::vector<Submission>& submissions) {
  std::size_t followed = 0;
  std::int64_t workers = 0;
  for (const auto& submission : submissions) {
    followed += submission.spec.after.size();
    workers += MostWorkers(submission.spec);
  }
  if (followed > kMostFollowedAtOnce) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("these jobs follow {} others, at most {} may be in one request",
                            followed, kMostFollowedAtOnce),
                "submit them in smaller batches");
  }
  if (workers > kMostWorkersAtOnce) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("these jobs have {} workers, at most {} may be in one request", workers,
                            kMostWorkersAtOnce),
                "submit them in smaller batches");
  }
  return {};
}

}  // namespace

Result<std::vector<JobNumber>> Controller::SubmitAll(std::vector<Submission> submissions) {
  std::vector<std::vector<Follows>> follows;  // of each, in jobs that are there already
  if (auto sums = CheckSums(submissions); !sums) return tl::unexpected(sums.error());
  // A request that was answered before is answered with what it made then.
  if (!submissions.empty()) {
    auto& first = submissions.front();
    const auto known = Repeated(first.user, first.key, first.digest);
    if (!known) return tl::unexpected(known.error());
    if (*known != nullptr) return NumbersFrom((*known)->job, submissions);
    if (!first.key.empty()) first.key += "#0#" + first.digest;
  }
  if (auto sound = CheckAll(submissions, follows); !sound) return tl::unexpected(sound.error());
  std::int64_t tasks = 0;
  for (const auto& submission : submissions) {
    tasks += std::max<std::int64_t>(1, static_cast<std::int64_t>(TasksOf(submission.spec)));
  }
  if (static_cast<std::int64_t>(state_.live_jobs()) + tasks > settings_.live_jobs_max) {
    return Fail(ErrorCode::kConflict,
                "there are too many jobs: " + std::to_string(state_.live_jobs()) +
                    " have not ended, at most " + std::to_string(settings_.live_jobs_max) +
                    " may wait or run",
                "wait for some to end, or raise the bound in musterd's settings");
  }
  // Those of a dry run are the ones they would get.
  auto made = NumbersFrom(state_.next_job(), submissions);
  std::map<std::string, JobNumber> named;  // the latest of the batch
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    auto& submission = submissions[i];
    if (submission.dry_run) continue;
    for (const auto& after : submission.spec.after) {
      const auto before = named.find(after.job);
      if (before != named.end()) follows[i].push_back({before->second, after.condition});
    }
    named[submission.spec.name] = made[i];
    const auto shared = std::make_shared<const model::Job>(std::move(submission.spec));
    const auto runtime =
        outlook_.Runtime(*shared, submission.user).value_or(engine::RuntimeGuess{});
    Emit(model::JobSubmitted{made[i], shared, submission.user, submission.uid, submission.gid,
                             std::move(follows[i]), submission.key, runtime.likely_ms,
                             runtime.from});
    const JobNumber first = shared->array ? made[i] + 1 : made[i];
    for (JobNumber job = first; submission.held && job < state_.next_job(); ++job) {
      Emit(model::JobHeld{job, true, submission.user});
    }
  }
  return made;
}

}  // namespace muster::control
