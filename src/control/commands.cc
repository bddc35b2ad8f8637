// What people ask for: each command is checked as a whole before anything is changed.
#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "control/controller.h"
#include "model/job_codec.h"
#include "model/problems.h"
#include "model/vocabulary.h"

namespace muster::control {

using model::Follows;
using state::JobRecord;

namespace {

constexpr std::size_t kNamesShown = 5;
constexpr std::size_t kMostTokens = 100'000;
constexpr std::size_t kMostSpecBytes = std::size_t{128} << 10;
constexpr std::size_t kMostArrayBytes = std::size_t{64} << 20;
constexpr std::size_t kMostFollowed = 100;
constexpr std::size_t kMostFollowedAtOnce = 10'000;  // by all jobs of a request
constexpr std::int64_t kMostTokensOfUser = 100;

std::optional<JobNumber> AsNumber(const std::string& word) {
  if (word.empty() || word.size() > 18 ||
      word.find_first_not_of("0123456789") != std::string::npos) {
    return std::nullopt;
  }
  return std::stoull(word);
}

}  // namespace

// The latest of that name that may be seen; 0: none.
JobNumber Controller::Named(const std::string& name, const Search& search, bool mine) const {
  const auto named = state_.Named(name);
  for (auto id = named.rbegin(); id != named.rend(); ++id) {
    const auto* array = state_.FindArray(*id);
    const auto* job = state_.Find(*id);
    const auto& user = array != nullptr ? array->user : job->user;
    const auto& queue = array != nullptr ? array->spec->queue : job->spec->queue;
    if (mine ? user == search.user : search.Sees(user, queue)) return *id;
  }
  return 0;
}

Result<JobNumber> Controller::ByBeginning(const std::string& word, const Search& search) const {
  for (const bool mine : {true, false}) {
    std::set<std::string> names;
    for (const auto& [id, job] : state_.jobs()) {
      if (!job.spec->name.starts_with(word)) continue;
      if (mine ? job.user == search.user : search.Sees(job.user, job.spec->queue)) {
        names.insert(job.spec->name);
      }
    }
    if (names.size() == 1) return Named(*names.begin(), search, mine);
    if (names.empty()) continue;
    std::string list;
    std::size_t shown = 0;
    for (const auto& name : names) {
      if (shown++ == kNamesShown) break;
      if (!list.empty()) list += ", ";
      list += name;
    }
    if (names.size() > kNamesShown) {
      list += " and " + std::to_string(names.size() - kNamesShown) + " more";
    }
    return Fail(ErrorCode::kConflict,
                fmt::format("\"{}\" is the beginning of several jobs: {}", word, list),
                "write more of the name, or the number");
  }
  return 0;
}

Result<JobNumber> Controller::Resolve(const std::string& word, const Search& search) const {
  if (word.empty()) {
    return Fail(ErrorCode::kUsage, "a job's name is empty", "give its name, its id or @last");
  }
  if (const auto number = AsNumber(word)) {
    const auto* job = state_.Find(*number);
    const auto* array = state_.FindArray(*number);
    if (job != nullptr && search.Sees(job->user, job->spec->queue)) return *number;
    if (array != nullptr && search.Sees(array->user, array->spec->queue)) return *number;
    const bool old = *number > 0 && *number < state_.next_job();
    if (job == nullptr && array == nullptr && old) return *number;  // history has it
  }
  if (word == "@last") {
    for (auto job = state_.jobs().rbegin(); job != state_.jobs().rend(); ++job) {
      if (job->second.user != search.user) continue;
      return job->second.array != 0 ? job->second.array : job->first;
    }
    return Fail(ErrorCode::kNotFound, "you have not submitted a job that is still remembered");
  }
  // "sweep[3]" is a task of the latest array of that name.
  if (const auto bracket = word.find('['); bracket != std::string::npos && word.back() == ']') {
    const auto index = AsNumber(word.substr(bracket + 1, word.size() - bracket - 2));
    const auto name = word.substr(0, bracket);
    auto array = Named(name, search, true);
    if (array == 0) array = Named(name, search, false);
    const auto* record = state_.FindArray(array);
    if (index && record != nullptr) {
      const auto offset = static_cast<std::int64_t>(*index) - record->spec->array->first;
      if (offset >= 0 && offset < record->tasks) return array + 1 + static_cast<JobNumber>(offset);
    }
  }
  for (const bool mine : {true, false}) {
    if (const auto found = Named(word, search, mine); found != 0) return found;
  }
  if (!search.whole_names) {
    auto found = ByBeginning(word, search);
    if (!found || *found != 0) return found;
  }
  // One that ended long ago is known by its whole name only.
  for (const std::string& owner : {search.user, std::string()}) {
    state::HistoryQuery query;
    query.name = word;
    query.user = owner;
    auto rows = ports_.store.History(query);
    if (!rows) return tl::unexpected(rows.error());
    for (const auto& row : *rows) {
      if (search.Sees(row.user, row.queue)) return row.job;
    }
  }
  return tl::unexpected(NoJob(word));
}

Result<const JobRecord*> Controller::Live(JobNumber id) const {
  const auto* job = state_.Find(id);
  if (job == nullptr) {
    if (id > 0 && id < state_.next_job()) {
      return Fail(ErrorCode::kConflict, "job " + std::to_string(id) + " has ended");
    }
    return tl::unexpected(NoJob(std::to_string(id)));
  }
  if (job->ending) {
    const bool cancelled = job->ending->end == model::End::kCancelled;
    return Fail(ErrorCode::kConflict,
                fmt::format("job {} ({}) has ended: it {}{}", id, job->name(),
                            cancelled ? "was " : "", Name(job->ending->end)),
                "`muster clone` submits it again");
  }
  return job;
}

// A command on an array is one on each of its tasks that has not ended.
Result<void> Controller::ForEachTask(JobNumber id,
                                     const std::function<Result<void>(JobNumber)>& act) {
  const auto* array = state_.FindArray(id);
  if (array == nullptr) return act(id);
  if (array->Ended()) {
    return Fail(ErrorCode::kConflict, "all tasks of array " + std::to_string(id) + " have ended");
  }
  const auto last = id + static_cast<JobNumber>(array->tasks);
  Result<void> refused;
  std::int64_t done = 0;
  for (JobNumber task = id + 1; task <= last; ++task) {
    const auto* job = state_.Find(task);
    if (job == nullptr || job->ending) continue;
    if (auto acted = act(task); acted) {
      ++done;
    } else {
      refused = acted;
    }
  }
  return done > 0 ? Result<void>() : refused;
}

Result<std::vector<Follows>> Controller::ResolveFollows(const Submission& submission) {
  std::vector<Follows> follows;
  for (const auto& after : submission.spec.after) {
    auto id = Resolve(after.job, {submission.user, submission.access, true});
    if (!id) {
      return Fail(ErrorCode::kNotFound, "`after: " + after.job + "`: " + id.error().message,
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
        return tl::unexpected(NoJob(after.job));
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

// It is kept whole in memory, in the journal and in history, for an array with every change of each
// of its tasks.
Result<void> Controller::CheckSize(const model::Job& spec) {
  std::size_t bytes = 0;
  for (const auto& word : spec.command) bytes += word.size();
  for (const auto* texts : {&spec.env, &spec.labels}) {
    for (const auto& [key, value] : *texts) bytes += key.size() + value.size();
  }
  const auto tasks =
      spec.array ? static_cast<std::size_t>(spec.array->last - spec.array->first + 1) : 1;
  if (bytes > kMostSpecBytes || bytes * tasks > kMostArrayBytes) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("command, env and labels have {} bytes; at most {} for a job, and {} "
                            "for all tasks of an array together",
                            bytes, kMostSpecBytes, kMostArrayBytes),
                "put long values into a file that the command reads");
  }
  if (spec.after.size() > kMostFollowed) {
    return Fail(
        ErrorCode::kInvalid,
        fmt::format("it follows {} jobs, at most {} may be", spec.after.size(), kMostFollowed),
        "follow an array, or a job that follows the others");
  }
  return {};
}

// Whether the job can be taken, and whom it follows but for those of `batch`, the names of jobs
// that come before it in the same request.
Result<std::vector<Follows>> Controller::Check(const Submission& submission,
                                               const std::set<std::string>& batch) {
  const auto& spec = submission.spec;
  if (auto bounded = CheckSize(spec); !bounded) return tl::unexpected(bounded.error());
  if (spec.kind == model::JobKind::kTune || spec.kind == model::JobKind::kServe) {
    return Fail(ErrorCode::kInvalid,
                "kind: " + std::string(NameOf(spec.kind)) + " is not available yet",
                "use kind: train or kind: build");
  }
  if (!spec.job_template.empty()) {
    if (spec.job_template != "jupyter") {
      return Fail(ErrorCode::kInvalid, "there is no template \"" + spec.job_template + "\"",
                  "`jupyter` is one; else give the command itself");
    }
    if (!spec.command.empty() || spec.framework != model::Framework::kNone) {
      return Fail(ErrorCode::kInvalid, "template: jupyter brings its own command",
                  "leave `command` and `framework` out, or the template");
    }
  } else if (spec.command.empty()) {
    return Fail(ErrorCode::kInvalid, "the job has no command",
                "add `command: [python3, train.py]`");
  }
  if (engine_.cluster().queues().Find(spec.queue) == engine::kNone) {
    return tl::unexpected(NoQueue(state_.queues(), submission.access, spec.queue));
  }
  Submission known = submission;
  std::erase_if(known.spec.after, [&](const auto& after) { return batch.contains(after.job); });
  auto follows = ResolveFollows(known);
  if (!follows) return follows;
  if (auto admitted = engine_.Admit(spec, NowMs()); !admitted) {
    return tl::unexpected(admitted.error());
  }
  return follows;
}

Result<JobNumber> Controller::Submit(Submission submission) {
  std::vector<Submission> one;
  one.push_back(std::move(submission));
  auto made = SubmitAll(std::move(one));
  if (!made) return tl::unexpected(made.error());
  return made->front();
}

// What an earlier request with the same key made; 0: nothing. Completes the key.
Result<JobNumber> Controller::Repeated(Submission& submission) const {
  auto& key = submission.key;
  if (key.empty()) return 0;
  const auto whole = key + "#" + submission.digest;
  const auto known = state_.FindKey(submission.user, whole);
  if (known == 0 && state_.HasKey(submission.user, key + "#")) {
    return Fail(ErrorCode::kConflict, "this Idempotency-Key was used for another request",
                "take a new key for a new request");
  }
  key = whole;
  return known;
}

Result<std::vector<JobNumber>> Controller::SubmitAll(std::vector<Submission> submissions) {
  std::set<std::string> batch;
  std::vector<JobNumber> made;
  std::vector<std::vector<Follows>> follows;  // of each, in jobs that are there already
  std::int64_t tasks = 0;
  std::size_t followed = 0;
  for (const auto& submission : submissions) followed += submission.spec.after.size();
  if (followed > kMostFollowedAtOnce) {
    return Fail(ErrorCode::kInvalid,
                fmt::format("these jobs follow {} others, at most {} may be in one request",
                            followed, kMostFollowedAtOnce),
                "submit them in smaller batches");
  }
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    const auto& submission = submissions[i];
    const auto& spec = submission.spec;
    // A request that was answered before is answered with what it made then.
    const auto repeated = Repeated(submissions[i]);
    if (!repeated) return tl::unexpected(repeated.error());
    const auto known = *repeated;
    made.push_back(known);
    follows.emplace_back();
    if (known != 0) continue;
    auto sound = Check(submission, batch);
    if (!sound) {
      Error error = sound.error();
      if (submissions.size() > 1) {
        error.message = "job " + std::to_string(i + 1) + " of " +
                        std::to_string(submissions.size()) + " (" + spec.name +
                        "): " + error.message + "; none was accepted";
      }
      return tl::unexpected(std::move(error));
    }
    follows.back() = std::move(*sound);
    batch.insert(spec.name);
    tasks += spec.array ? spec.array->last - spec.array->first + 1 : 1;
  }
  if (static_cast<std::int64_t>(state_.live_jobs()) + tasks > settings_.live_jobs_max) {
    return Fail(ErrorCode::kConflict,
                "there are too many jobs: " + std::to_string(state_.live_jobs()) +
                    " have not ended, at most " + std::to_string(settings_.live_jobs_max) +
                    " may wait or run",
                "wait for some to end, or raise the bound in musterd's settings");
  }
  std::map<std::string, JobNumber> named;  // the latest of the batch
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    auto& submission = submissions[i];
    if (made[i] != 0) continue;
    made[i] = state_.next_job();
    if (submission.dry_run) continue;
    for (const auto& after : submission.spec.after) {
      const auto before = named.find(after.job);
      if (before != named.end()) follows[i].push_back({before->second, after.condition});
    }
    named[submission.spec.name] = made[i];
    const auto shared = std::make_shared<const model::Job>(std::move(submission.spec));
    Emit(model::JobSubmitted{made[i], shared, submission.user, submission.uid, submission.gid,
                             std::move(follows[i]), submission.key});
    const JobNumber first = shared->array ? made[i] + 1 : made[i];
    for (JobNumber job = first; submission.held && job < state_.next_job(); ++job) {
      Emit(model::JobHeld{job, true, submission.user});
    }
  }
  return made;
}

Result<void> Controller::Cancel(JobNumber id, const By& by) {
  return ForEachTask(id, [&](JobNumber task) -> Result<void> {
    auto job = Live(task);
    if (!job) return tl::unexpected(job.error());
    if ((*job)->stopping != StopWhy::kCancelled && !by.dry_run)
      StopJob(task, StopWhy::kCancelled, by.who);
    return {};
  });
}

Result<void> Controller::Suspend(JobNumber id, const By& by) {
  return ForEachTask(id, [&](JobNumber task) -> Result<void> {
    auto job = Live(task);
    if (!job) return tl::unexpected(job.error());
    if ((*job)->suspended) return {};
    if ((*job)->stopping != StopWhy::kNone) {
      return Fail(ErrorCode::kConflict,
                  "job " + std::to_string(task) + " is being stopped already");
    }
    if (!by.dry_run) StopJob(task, StopWhy::kSuspended, by.who);
    return {};
  });
}

Result<void> Controller::Resume(JobNumber id, const By& by) {
  return ForEachTask(id, [&](JobNumber task) -> Result<void> {
    auto job = Live(task);
    if (!job) return tl::unexpected(job.error());
    if (!(*job)->suspended && !(*job)->held) {
      return Fail(ErrorCode::kConflict,
                  "job " + std::to_string(task) + " is neither suspended nor held",
                  "a job that is paused or waits goes on by itself; `muster why` says when");
    }
    if (!by.dry_run) Emit(model::JobResumed{task, by.who});
    return {};
  });
}

Result<void> Controller::Hold(JobNumber id, const By& by) {
  return ForEachTask(id, [&](JobNumber task) -> Result<void> {
    auto job = Live(task);
    if (!job) return tl::unexpected(job.error());
    if ((*job)->Holds()) {
      return Fail(ErrorCode::kConflict, "job " + std::to_string(task) + " runs already",
                  "`muster suspend` stops it");
    }
    if (!by.dry_run) Emit(model::JobHeld{task, true, by.who});
    return {};
  });
}

Result<void> Controller::Requeue(JobNumber id, const By& by) {
  return ForEachTask(id, [&](JobNumber task) -> Result<void> {
    auto job = Live(task);
    if (!job) return tl::unexpected(job.error());
    if (!(*job)->Holds()) {
      return Fail(ErrorCode::kConflict, "job " + std::to_string(task) + " does not run",
                  "it starts as soon as it can; `muster why` says when");
    }
    if ((*job)->stopping != StopWhy::kNone) {
      return Fail(ErrorCode::kConflict,
                  "job " + std::to_string(task) + " is being stopped already");
    }
    if (!by.dry_run) StopJob(task, StopWhy::kRequeued, by.who);
    return {};
  });
}

// Nothing is written: what comes of it is the worker's report.
Result<void> Controller::AskCheckpoint(JobNumber id, const By& by) {
  return ForEachTask(id, [&](JobNumber task) -> Result<void> {
    auto job = Live(task);
    if (!job) return tl::unexpected(job.error());
    if ((*job)->Count(state::WorkerPhase::kRunning) == 0) {
      return Fail(ErrorCode::kConflict, "job " + std::to_string(task) + " does not run",
                  "only a running job writes a checkpoint; `muster why` says when it starts");
    }
    for (std::uint32_t w = 0; w < (*job)->workers.size() && !by.dry_run; ++w) {
      const auto& worker = (*job)->workers[w];
      if (worker.phase != state::WorkerPhase::kRunning) continue;
      effects_.push_back({Effect::Kind::kCheckpoint, {task, w, worker.launch}, worker.node});
    }
    return {};
  });
}

Result<void> Controller::Scale(JobNumber id, int minimum, int maximum, const By& by) {
  return ForEachTask(
      id, [&](JobNumber task) -> Result<void> { return ScaleTask(task, minimum, maximum, by); });
}

Result<void> Controller::ScaleTask(JobNumber id, int minimum, int maximum, const By& by) {
  auto job = Live(id);
  if (!job) return tl::unexpected(job.error());
  const auto& spec = *(*job)->spec;
  if (spec.roles.size() != 1 || spec.groups.size() != 1) {
    return Fail(ErrorCode::kInvalid, "job " + std::to_string(id) + " has several roles",
                "submit it again with other counts");
  }
  if (minimum < 1 || maximum < minimum || maximum > model::kMostWorkers) {
    return Fail(ErrorCode::kInvalid,
                "workers are counted from 1 to 100000, the maximum not below the minimum");
  }
  int held = 0;  // up to the last worker that has a place
  for (std::size_t w = 0; w < (*job)->workers.size(); ++w) {
    if ((*job)->workers[w].Holds()) held = static_cast<int>(w) + 1;
  }
  auto changed = std::make_shared<model::Job>(spec);
  changed->roles[0].count = maximum;
  changed->groups[0].minimum = minimum;
  if (auto admitted = engine_.Admit(*changed, NowMs()); !admitted) return admitted;
  const bool too_many = (*job)->Holds() && maximum < held;
  if (too_many && (*job)->stopping != StopWhy::kNone) {
    return Fail(ErrorCode::kConflict, "job " + std::to_string(id) + " is being stopped already",
                "scale it when it has stopped");
  }
  if (by.dry_run) return {};
  Emit(model::JobChanged{id, changed,
                         "workers " + std::to_string(minimum) + ".." + std::to_string(maximum),
                         by.who, too_many});
  // The worker with the highest number may be the one that does the work: all stop at a checkpoint
  // and start again as fewer.
  if (too_many) StopJob(id, StopWhy::kRequeued, by.who);
  return {};
}

Result<void> Controller::SetPriority(JobNumber id, std::int64_t priority, const By& by) {
  if (priority < 0 || priority > 1'000'000) {
    return Fail(ErrorCode::kInvalid, "a priority is a number from 0 to 1000000",
                "or low, normal, high, build, critical");
  }
  return ForEachTask(id, [&](JobNumber task) -> Result<void> {
    auto job = Live(task);
    if (!job) return tl::unexpected(job.error());
    auto changed = std::make_shared<model::Job>(*(*job)->spec);
    // Where the file says what its priority says, the new priority decides.
    const bool by_default = changed->preemptible == model::PreemptibleByDefault(*changed);
    changed->priority = priority;
    if (by_default) changed->preemptible = model::PreemptibleByDefault(*changed);
    if (by.dry_run) return {};
    Emit(model::JobChanged{task, changed, "priority " + std::to_string(priority), by.who});
    return {};
  });
}

Result<void> Controller::MarkNode(const std::string& node, bool cordoned, bool draining,
                                  const By& by) {
  const auto found = state_.nodes().find(node);
  if (found == state_.nodes().end()) {
    return Fail(ErrorCode::kNotFound, "there is no node \"" + node + "\"",
                "`muster nodes` lists them");
  }
  if (!by.dry_run) Emit(model::NodeMarked{node, cordoned, draining, by.who});
  return {};
}

Result<void> Controller::ApplyQueues(std::vector<model::Queue> queues, const By& by) {
  // Queues of the file replace those of the same name; the others stay.
  std::vector<model::Queue> tree = state_.queues();
  for (auto& queue : queues) {
    const auto known =
        std::find_if(tree.begin(), tree.end(), [&](const auto& q) { return q.name == queue.name; });
    if (known != tree.end()) {
      queue.created_order = known->created_order;
      *known = std::move(queue);
    } else {
      queue.created_order = static_cast<std::int64_t>(tree.size());
      tree.push_back(std::move(queue));
    }
  }
  return PutTree(std::move(tree), by);
}

Result<void> Controller::DeleteQueue(const std::string& name, const By& by) {
  std::vector<model::Queue> tree = state_.queues();
  const auto known =
      std::find_if(tree.begin(), tree.end(), [&](const auto& q) { return q.name == name; });
  if (known == tree.end()) {
    return Fail(ErrorCode::kNotFound, "there is no queue \"" + name + "\"",
                "`muster queue list` shows them");
  }
  for (const auto& queue : tree) {
    if (queue.parent == name) {
      return Fail(ErrorCode::kConflict, "queue " + name + " has queues below it: " + queue.name,
                  "delete those first");
    }
  }
  for (const auto& [id, job] : state_.jobs()) {
    if (!job.ending && job.spec->queue == name) {
      return Fail(ErrorCode::kConflict,
                  "queue " + name + " has jobs that have not ended, such as " + std::to_string(id),
                  "wait for them, or cancel them");
    }
  }
  tree.erase(known);
  if (tree.empty()) {
    return Fail(ErrorCode::kConflict, "queue " + name + " is the last one",
                "apply another one first");
  }
  return PutTree(std::move(tree), by);
}

Result<void> Controller::PutTree(std::vector<model::Queue> tree, const By& by) {
  std::set<std::string_view> names;
  for (const auto& queue : tree) names.insert(queue.name);
  std::map<std::string_view, JobNumber> busy;  // by queue
  for (const auto& [id, job] : state_.jobs()) {
    if (!job.ending) busy.emplace(job.spec->queue, id);
  }
  for (const auto& queue : tree) {
    if (!queue.parent.empty() && !names.contains(queue.parent)) {
      return Fail(ErrorCode::kInvalid, "queue " + queue.name + " has no parent " + queue.parent,
                  "add it to the file");
    }
    if (const auto job = busy.find(queue.parent); job != busy.end()) {
      return Fail(ErrorCode::kConflict,
                  "queue " + queue.parent + " has jobs of its own (" + std::to_string(job->second) +
                      "), so it cannot get queues below it",
                  "wait for them to end, or cancel them");
    }
  }
  // The tree must be one that the engine takes; tried before it is written.
  state::State trial;
  trial.Fold({NowMs(), model::QueuesApplied{tree, by.who}});
  EngineView view(settings_.engine);
  if (auto built = view.Build(trial, NowMs()); !built) return built;
  if (!by.dry_run) Emit(model::QueuesApplied{std::move(tree), by.who});
  return {};
}

Result<void> Controller::SetUser(model::UserSet user) {
  Emit(std::move(user));
  return {};
}

Result<void> Controller::RemoveUser(const std::string& name, const By& by) {
  if (!state_.users().contains(name)) {
    return Fail(ErrorCode::kNotFound, "user " + name + " has no role of its own",
                "`muster user list` shows who has");
  }
  if (!by.dry_run) Emit(model::UserRemoved{name, by.who});
  return {};
}

Result<void> Controller::MakeToken(model::TokenMade token) {
  const auto mine = std::count_if(state_.tokens().begin(), state_.tokens().end(),
                                  [&](const auto& one) { return one.second.user == token.user; });
  if (mine >= kMostTokensOfUser || state_.tokens().size() >= kMostTokens) {
    return Fail(ErrorCode::kConflict,
                "user " + token.user + " has " + std::to_string(mine) + " tokens, at most " +
                    std::to_string(kMostTokensOfUser) + " may be",
                "`muster token list` shows them; revoke those that are not used");
  }
  Emit(std::move(token));
  return {};
}

Result<void> Controller::RevokeToken(const std::string& id, const By& by) {
  if (!state_.tokens().contains(id)) {
    return Fail(ErrorCode::kNotFound, "there is no token " + id, "`muster token list` shows them");
  }
  if (!by.dry_run) Emit(model::TokenRevoked{id, by.who});
  return {};
}

}  // namespace muster::control
