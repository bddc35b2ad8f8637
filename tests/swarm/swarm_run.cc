#include "swarm_run.h"

#include <algorithm>

#include "sim/replay.h"
#include "swarm_draw.h"

namespace muster::swarm {

using state::JobRecord;
using state::WorkerPhase;

namespace {

std::vector<model::Node> NodesOf(std::uint64_t seed) {
  Random random(seed);
  return DrawNodes(random);
}

std::int64_t CountGpus(const std::vector<model::Node>& nodes) {
  std::int64_t gpus = 0;
  for (const auto& node : nodes) gpus += std::ssize(node.gpus);
  return gpus;
}

}  // namespace

SwarmRun::SwarmRun(std::uint64_t seed)
    : random_(seed * 31 + 7), nodes_(NodesOf(seed)), store_(story_), pool_(story_, seed, nodes_) {
  queues_ = DrawQueues(random_, CountGpus(nodes_));
  settings_.version = "swarm";
  settings_.snapshot_every = static_cast<std::uint64_t>(random_.Between(20, 400));
  pool_.in_journal = [this](const LaunchKey& key) { return store_.Placed(key); };
}

void SwarmRun::Boot() {
  control_.reset();
  control_ = std::make_unique<control::Controller>(
      control::Controller::Ports{story_.clock, store_, {&pool_}}, settings_);
  healthy_ = false;
}

void SwarmRun::Round() {
  try {
    if (control_ == nullptr) Boot();
    if (!healthy_) {
      healthy_ = control_->Recover().has_value();
      if (healthy_) ++tally_.recoveries;
      story_.Tell(healthy_ ? "recovered" : "cannot recover");
    }
    if (healthy_) {
      Act();
      healthy_ = control_->Turn().has_value();
      if (healthy_) {
        accepted_.insert(accepted_.end(), asked_.begin(), asked_.end());
        if (!story_.calm) audited_.insert(round_);
        CheckLimits();
      }
    }
  } catch (const Crash&) {
    ++tally_.crashes;
    control_.reset();
    pool_.DaemonDied();
    healthy_ = false;
  }
  asked_.clear();
}

void SwarmRun::Act() {
  if (story_.calm) return;
  control_->Audit({.what = "round", .object = std::to_string(++round_)});
  if (control_->state().queues().size() < 2) (void)control_->ApplyQueues(queues_, "admin");
  const auto commands = random_.Between(0, 3);
  for (std::int64_t i = 0; i < commands; ++i) random_.Chance(45) ? Submit() : Command();
}

void SwarmRun::Submit() {
  if (accepted_.size() > 40) return;
  control::Submission submission;
  const auto gpus = static_cast<int>(nodes_.front().gpus.size());
  submission.spec = DrawJob(random_, queues_, gpus, accepted_);
  submission.user = random_.Chance(50) ? "ann" : "bob";
  submission.held = random_.Chance(8);
  const auto number = control_->Submit(std::move(submission));
  if (!number) return;
  control_->Audit({.what = "submitJob", .object = std::to_string(*number)});
  story_.Tell("submit " + std::to_string(*number));
  asked_.push_back(*number);
}

SwarmRun::JobNumber SwarmRun::AnyJob() {
  return static_cast<JobNumber>(
      random_.Between(1, static_cast<std::int64_t>(control_->state().next_job())));
}

void SwarmRun::Command() {
  const auto job = AnyJob();
  const auto& node =
      nodes_[static_cast<std::size_t>(random_.Between(0, std::ssize(nodes_) - 1))].name;
  const auto say = [&](const char* what, const Result<void>& done) {
    if (done) story_.Tell(std::string(what) + " " + std::to_string(job));
  };
  switch (random_.Between(0, 13)) {
    case 0:
      return say("cancel", control_->Cancel(job, "ann"));
    case 1:
    case 2:
      return say("suspend", control_->Suspend(job, "ann"));
    case 3:
    case 4:
    case 5:
      return say("resume", control_->Resume(job, "ann"));
    case 6:
      return say("hold", control_->Hold(job, "ann"));
    case 7:
      return say("requeue", control_->Requeue(job, "ann"));
    case 8: {
      const auto least = static_cast<int>(random_.Between(1, 3));
      const auto most = least + static_cast<int>(random_.Between(0, 3));
      return say("scale", control_->Scale(job, least, most, "ann"));
    }
    case 9:
      return say("priority", control_->SetPriority(job, random_.Between(0, 120), "ann"));
    case 10: {
      const bool off = random_.Chance(40);
      if (control_->MarkNode(node, off, off && random_.Chance(50), "admin")) {
        story_.Tell((off ? "cordon " : "uncordon ") + node);
      }
      return;
    }
    case 11:
      if (random_.Chance(70)) return;
      queues_ = DrawQueues(random_, CountGpus(nodes_));
      while (queues_.size() < 4) {
        queues_.push_back(queues_.back());
        queues_.back().name = "q" + std::to_string(queues_.size() - 1);
      }
      return say("queues", control_->ApplyQueues(queues_, "admin"));
    case 12:
      return SetPolicy();
    default:
      return Reserve(node);
  }
}

// Of few names, so that some are replaced; for so short that some are over before a crash is.
void SwarmRun::Reserve(const std::string& node) {
  control::ReservationWish wish;
  wish.name = "r" + std::to_string(random_.Between(0, 2));
  if (random_.Chance(30)) {
    if (control_->RemoveReservation(wish.name, "admin")) story_.Tell("unreserve " + wish.name);
    return;
  }
  if (random_.Chance(70)) {
    wish.queue =
        queues_[static_cast<std::size_t>(random_.Between(0, std::ssize(queues_) - 1))].name;
  }
  wish.from_ms = control_->NowMs() + random_.Between(0, 60'000);
  wish.to_ms = *wish.from_ms + random_.Between(1, 300'000);
  if (random_.Chance(50)) {
    wish.nodes = {node};
  } else {
    wish.gpus = static_cast<int>(random_.Between(1, 8));
  }
  if (const auto kept = control_->SetReservation(wish, "admin")) {
    story_.Tell("reserve " + wish.name + " for " + (wish.queue.empty() ? "nobody" : wish.queue));
  }
}

void SwarmRun::SetPolicy() {
  const auto done = random_.Chance(30) ? control_->UndoPolicy("admin")
                                       : control_->ApplyPolicy(DrawPolicy(random_), "admin");
  if (done) story_.Tell("policy " + std::to_string(done->id));
}

void SwarmRun::Trouble() {
  const auto& node =
      nodes_[static_cast<std::size_t>(random_.Between(0, std::ssize(nodes_) - 1))].name;
  switch (random_.Between(0, 30)) {
    case 0:
      return pool_.NodeDown(node);
    case 1:
    case 2:
      return pool_.NodeUp(node);
    case 3:
      store_.FailFor(static_cast<int>(random_.Between(1, 5)));
      return;
    case 4:
      return store_.FailOnceDurable();
    case 5:
    case 6:
      if (story_.crash_in == 0) story_.crash_in = static_cast<int>(random_.Between(1, 25));
      return;
    case 7: {
      const auto by = random_.Between(-7'200'000, 7'200'000);
      story_.Tell("the wall clock jumps by " + std::to_string(by));
      story_.clock.SetWall(by);
      return;
    }
    case 8:
      if (healthy_ && control_ != nullptr && control_->Finish()) {
        story_.Tell("the daemon is restarted");
        control_.reset();
        pool_.DaemonDied();
        healthy_ = false;
      }
      return;
    default:
      return;
  }
}

void SwarmRun::Play() {
  const auto rounds = random_.Between(20, 150);
  for (std::int64_t i = 0; i < rounds && story_.wrong.empty(); ++i) {
    try {
      Trouble();
    } catch (const Crash&) {
      control_.reset();
      pool_.DaemonDied();
      healthy_ = false;
    }
    Round();
    story_.clock.Advance(random_.Chance(10) ? random_.Between(0, 120'000)
                                            : random_.Between(0, 4'000));
  }
  Calm();
  LetRunOut();
  if (story_.wrong.empty()) CheckRest();
}

void SwarmRun::Calm() {
  story_.Tell("all faults end");
  story_.calm = true;
  story_.crash_in = 0;
  store_.Heal();
  for (const auto& node : nodes_) pool_.NodeUp(node.name);
  Round();
  if (!healthy_) return story_.Wrong("the daemon does not come back when all is well");
  for (const auto& node : nodes_) (void)control_->MarkNode(node.name, false, false, "admin");
  (void)control_->ApplyPolicy({}, "admin");
  std::vector<JobNumber> ids;
  for (const auto& [id, job] : control_->state().jobs()) ids.push_back(id);
  for (const auto id : ids) {
    if (random_.Chance(70)) (void)control_->Resume(id, "ann");
  }
  Round();
}

bool SwarmRun::Done() const {
  const auto& jobs = control_->state().jobs();
  return pool_.processes().empty() && control_->state().reservations().empty() &&
         std::none_of(jobs.begin(), jobs.end(), [&](const auto& e) {
           return !e.second.ending &&
                  (e.second.Holds() || e.second.not_before_ms > control_->NowMs() ||
                   e.second.stopping != model::StopWhy::kNone);
         });
}

void SwarmRun::LetRunOut() {
  int quiet = 0;
  for (int i = 0; i < 2'000 && quiet < 4 && story_.wrong.empty(); ++i) {
    story_.clock.Advance(random_.Between(500, 15'000));
    Round();
    if (!healthy_) return story_.Wrong("a turn fails when all is well");
    quiet = Done() ? quiet + 1 : 0;
  }
  if (quiet >= 4 || !story_.wrong.empty()) return;
  for (const auto& [id, job] : control_->state().jobs()) {
    if (!job.ending && job.Holds()) {
      std::string what = "job " + std::to_string(id) + " never comes to rest:";
      for (const auto& w : job.workers) what += " " + std::string(Name(w.phase));
      return story_.Wrong(what);
    }
  }
  for (const auto& [key, process] : pool_.processes()) {
    return story_.Wrong("launch " + key.Name() + " is never forgotten");
  }
  for (const auto& [name, record] : control_->state().reservations()) {
    return story_.Wrong("reservation " + name + " is never over");
  }
  story_.Wrong("no rest is found");
}

void SwarmRun::CheckLimits() {
  const auto& state = control_->state();
  for (const auto& [id, array] : state.arrays()) {
    const auto at_once = array.spec->array->at_once;
    if (at_once > 0 && state.ActiveTasks(id) > at_once) {
      story_.Wrong("array " + std::to_string(id) + " has more tasks than it may at once");
    }
  }
}

void SwarmRun::CheckRest() {
  const auto& state = control_->state();
  for (const auto id : accepted_) {
    if (state.Find(id) == nullptr && state.FindArray(id) == nullptr) {
      story_.Wrong("job " + std::to_string(id) + " was accepted and is lost");
    }
  }
  if (pool_.Living() > 0) story_.Wrong("something lives on");
  for (const auto& [id, job] : state.jobs()) {
    if (!job.ending) CheckWaiting(job);
  }
  if (story_.wrong.empty()) JudgeJournal(story_, store_, pool_, state, tally_);
  if (story_.wrong.empty()) CheckAudit();
  if (story_.wrong.empty()) CheckReplay();
  tally_.jobs += std::ssize(state.jobs());
  tally_.launches += std::ssize(pool_.truth());
}

void SwarmRun::CheckWaiting(const JobRecord& job) {
  const auto& state = control_->state();
  const auto now = control_->NowMs();
  const auto who = "job " + std::to_string(job.id);
  switch (sim::BarOf(job, now)) {
    case sim::Bar::kHeld:
    case sim::Bar::kSuspended:
      return;
    case sim::Bar::kFollows:
      for (const auto& f : job.follows) {
        const auto* before = state.Find(f.job);
        const auto* array = state.FindArray(f.job);
        const bool live = before != nullptr ? !before->ending : array != nullptr && !array->Ended();
        if (!live) story_.Wrong(who + " follows " + std::to_string(f.job) + ", which has ended");
      }
      return;
    case sim::Bar::kNone:
      break;
    default:
      return story_.Wrong(who + " stops or backs off for ever");
  }
  if (!control_->engine().Has(job.id)) {
    const auto at_once = job.spec->array ? job.spec->array->at_once : 0;
    if (at_once > 0 && control_->engine().TasksOf(job.array) >= at_once) return;
    return story_.Wrong(who + " may run and the engine does not have it");
  }
  const auto why = control_->engine().Explain(job.id, now);
  switch (why->gate) {
    case model::Gate::kLimit:
    case model::Gate::kFixedQuota:
    case model::Gate::kNeverFits:
      return;
    default:
      break;
  }
  std::string what = who + " waits on an empty cluster: " + std::string(Name(why->gate));
  for (const auto& worker : job.workers) what += " " + std::string(Name(worker.phase));
  story_.Wrong(what);
}

// A row is there once if what it tells of is, and not otherwise.
void SwarmRun::CheckAudit() {
  std::set<std::string> due, found;
  for (const auto& record : store_.all()) {
    const auto body = model::DecodeEvent(record.body);
    const auto* job = std::get_if<model::JobSubmitted>(&*body);
    if (job != nullptr) due.insert("submitJob " + std::to_string(job->job));
  }
  for (const auto round : audited_) due.insert("round " + std::to_string(round));
  for (const auto& row : store_.audits()) {
    const auto name = row.what + " " + row.object;
    if (row.at_ms == 0) story_.Wrong("the audit trail does not say when: " + name);
    if (!found.insert(name).second) story_.Wrong("the audit trail has it twice: " + name);
    // A round that was said to have failed may have been written.
    if (row.what == "submitJob" && !due.contains(name)) story_.Wrong(name + " never happened");
  }
  for (const auto& name : due) {
    if (!found.contains(name)) story_.Wrong("the audit trail does not have " + name);
  }
}

void SwarmRun::CheckReplay() {
  const auto bytes = control_->Export();
  if (!bytes) return story_.Wrong("the recording fails: " + Describe(bytes.error()));
  const auto recording = sim::DecodeRecording(*bytes);
  if (!recording) return story_.Wrong("the recording is not read: " + Describe(recording.error()));
  const auto report = sim::Replay(*recording);
  if (!report) return story_.Wrong("the replay fails: " + Describe(report.error()));
  tally_.replayed += report->decisions;
  if (!report->same) story_.Wrong("the replay differs " + report->difference);
}

}  // namespace muster::swarm
