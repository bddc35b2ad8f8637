// What people ask for: each command is checked as a whole before anything is changed.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/check.h"
#include "control/controller.h"
#include "model/job_codec.h"
#include "model/problems.h"
#include "model/vocabulary.h"

namespace muster::control {

using state::JobRecord;

namespace {

constexpr std::size_t kNamesShown = 5;
constexpr std::size_t kMostTokens = 100'000;
constexpr std::size_t kMostQueues = 10'000;
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

namespace {

// While a job is being stopped: whether it waits to be started again when it has stopped.
bool ComesBack(model::StopWhy why) {
  return why == model::StopWhy::kSuspended || why == model::StopWhy::kRequeued ||
         why == model::StopWhy::kRegrouped || why == model::StopWhy::kNeverStarted;
}

std::string_view WhatGoesOn(model::StopWhy why) {
  switch (why) {
    case model::StopWhy::kCancelled:
    case model::StopWhy::kDependency:
      return "is being cancelled";
    case model::StopWhy::kSuspended:
      return "is being suspended";
    case model::StopWhy::kRequeued:
    case model::StopWhy::kRegrouped:
      return "is being stopped to start again";
    case model::StopWhy::kTimeLimit:
      return "is being ended at its time limit";
    case model::StopWhy::kIdleLimit:
      return "is being ended because it was idle";
    case model::StopWhy::kMemberFailed:
      return "is being stopped because one of its workers has failed";
    case model::StopWhy::kMemberDone:
      return "has done its work and is ending";
    default:
      return "is being stopped";
  }
}

tl::unexpected<Error> Stopping(const JobRecord& job, const char* hint) {
  return Fail(ErrorCode::kConflict, fmt::format("job {} {}", job.id, WhatGoesOn(job.stopping)),
              hint);
}

constexpr const char* kWaitForIt = "`muster wait` tells when it has stopped";

}  // namespace

// Whatever it is being stopped for, it ends; but not one that only has to go.
Result<void> Controller::Cancel(JobNumber id, const By& by) {
  return ForEachTask(id, [&](JobNumber task) -> Result<void> {
    auto job = Live(task);
    if (!job) return tl::unexpected(job.error());
    if ((*job)->stopping == StopWhy::kMemberDone) {
      return Stopping(**job, "there is nothing left to cancel");
    }
    if ((*job)->stopping != StopWhy::kCancelled && !by.dry_run)
      StopJob(task, StopWhy::kCancelled, by.who);
    return {};
  });
}

Result<void> Controller::Suspend(JobNumber id, const By& by) {
  return ForEachTask(id, [&](JobNumber task) -> Result<void> {
    auto job = Live(task);
    if (!job) return tl::unexpected(job.error());
    const auto stopping = (*job)->stopping;
    if (stopping != StopWhy::kNone && !ComesBack(stopping)) return Stopping(**job, kWaitForIt);
    if ((*job)->suspended) return {};
    if (!by.dry_run) StopJob(task, StopWhy::kSuspended, by.who);
    return {};
  });
}

Result<void> Controller::Resume(JobNumber id, const By& by) {
  return ForEachTask(id, [&](JobNumber task) -> Result<void> {
    auto job = Live(task);
    if (!job) return tl::unexpected(job.error());
    const auto stopping = (*job)->stopping;
    if (stopping != StopWhy::kNone && !ComesBack(stopping)) return Stopping(**job, kWaitForIt);
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
    const auto stopping = (*job)->stopping;
    if (stopping != StopWhy::kNone && !ComesBack(stopping)) return Stopping(**job, kWaitForIt);
    if ((*job)->Holds() && stopping == StopWhy::kNone) {
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
    if ((*job)->suspended) return Stopping(**job, "`muster resume` lets it start again");
    if (ComesBack((*job)->stopping)) return {};  // it starts again as it is
    if ((*job)->stopping != StopWhy::kNone) return Stopping(**job, kWaitForIt);
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
    return tl::unexpected(
        Error{ErrorCode::kInvalid,
              fmt::format("{} to {} is no number of workers: they are counted from 1 to {}, the "
                          "maximum not below the minimum",
                          minimum, maximum, model::kMostWorkers),
              "give the minimum first: 2..8", "workers"});
  }
  int held = 0;  // up to the last worker that has a place
  for (std::size_t w = 0; w < (*job)->workers.size(); ++w) {
    if ((*job)->workers[w].Holds()) held = static_cast<int>(w) + 1;
  }
  auto changed = std::make_shared<model::Job>(spec);
  changed->roles[0].count = maximum;
  changed->groups[0].minimum = minimum;
  if (auto admitted = engine_.Admit(*changed, NowMs()); !admitted) {
    admitted.error().path = "workers";
    return admitted;
  }
  const bool too_many = (*job)->Holds() && maximum < held;
  if (too_many && (*job)->stopping != StopWhy::kNone) {
    return Stopping(**job, "scale it when it has stopped");
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
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < tree.size(); ++i) places.emplace(tree[i].name, i);
  for (auto& queue : queues) {
    const auto [known, fresh] = places.emplace(queue.name, tree.size());
    if (!fresh) {
      queue.created_order = tree[known->second].created_order;
      tree[known->second] = std::move(queue);
    } else {
      queue.created_order = static_cast<std::int64_t>(tree.size());
      tree.push_back(std::move(queue));
    }
  }
  if (tree.size() > kMostQueues) {
    return Fail(ErrorCode::kInvalid,
                "there would be " + std::to_string(tree.size()) + " queues, and at most " +
                    std::to_string(kMostQueues) + " may be there",
                "delete some that nobody uses, or divide less finely");
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
  for (const auto& [other, record] : state_.reservations()) {
    if (record.reservation.queue == name) {
      return Fail(ErrorCode::kConflict, fmt::format("queue {} has a reservation: {}", name, other),
                  "`muster reservation delete " + other + "` first");
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

Result<model::PolicyApplied> Controller::ApplyPolicy(PolicyFile file, const By& by) {
  if (auto legal = engine::ApplySettings(file.settings); !legal) {
    return tl::unexpected(legal.error());
  }
  model::PolicyApplied next;
  next.name = std::move(file.name);
  next.about = std::move(file.about);
  next.settings = std::move(file.settings);
  next.by = by.who;
  next.before = 0;
  next.id = 1;
  if (!state_.policies().empty()) {
    const auto& now = state_.policies().back().said;
    const bool same =
        now.name == next.name && now.about == next.about && now.settings == next.settings;
    if (same) return now;
    next.before = static_cast<std::int64_t>(now.id);
    next.id = now.id + 1;
  }
  if (!by.dry_run) Emit(next);
  return next;
}

Result<model::PolicyApplied> Controller::UndoPolicy(const By& by) {
  const auto& known = state_.policies();
  if (known.empty() || known.back().said.before < 0) {
    return Fail(ErrorCode::kConflict, "there is no change of policy to undo",
                "`muster policy list` shows what was applied");
  }
  const auto& now = known.back().said;
  model::PolicyApplied next;  // the defaults
  if (now.before > 0) {
    const auto before = std::find_if(known.begin(), known.end(), [&](const auto& one) {
      return one.said.id == static_cast<std::uint64_t>(now.before);
    });
    if (before == known.end()) {
      return Fail(ErrorCode::kConflict,
                  "policy " + std::to_string(now.before) +
                      ", which was in force before, is no "
                      "longer remembered",
                  "apply its file again; `muster audit` has what it said");
    }
    next = before->said;
  }
  next.id = now.id + 1;
  next.by = by.who;
  next.undoes = now.id;
  if (!by.dry_run) Emit(next);
  return next;
}

Result<model::Reservation> Controller::SetReservation(const ReservationWish& wish, const By& by) {
  auto booked = Book(state_, wish, NowMs());
  if (booked && !by.dry_run) Emit(model::ReservationSet{*booked, by.who});
  return booked;
}

Result<void> Controller::RemoveReservation(const std::string& name, const By& by) {
  const auto found = state_.reservations().find(name);
  if (found == state_.reservations().end()) {
    return Fail(ErrorCode::kNotFound, "there is no reservation \"" + name + "\"",
                "`muster reservation list` shows them");
  }
  const auto queue = found->second.reservation.queue;
  if (!by.dry_run) Emit(model::ReservationRemoved{name, queue, by.who, ""});
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

Result<void> Controller::MakeToken(model::TokenMade token, bool dry_run) {
  const auto mine = std::count_if(state_.tokens().begin(), state_.tokens().end(),
                                  [&](const auto& one) { return one.second.user == token.user; });
  if (mine >= kMostTokensOfUser || state_.tokens().size() >= kMostTokens) {
    return Fail(ErrorCode::kConflict,
                "user " + token.user + " has " + std::to_string(mine) + " tokens, at most " +
                    std::to_string(kMostTokensOfUser) + " may be",
                "`muster token list` shows them; revoke those that are not used");
  }
  if (!dry_run) Emit(std::move(token));
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
