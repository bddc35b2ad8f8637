#include "control/plan.h"

#include <algorithm>

#include "base/units.h"
#include "control/view_parts.h"
#include "engine/explain.h"

namespace muster::control {

using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::StopWhy;
using model::TextNode;

namespace {

constexpr int kMostRounds = 20;

// Why somebody has to leave, in words.
const char* WhyOf(model::Rule rule) {
  switch (rule) {
    case model::Rule::kShrink:
      return "others have grown beyond what their queues are entitled to";
    case model::Rule::kConsolidate:
      return "it fits when others move together";
    case model::Rule::kReclaimShare:
      return "another queue is above its fair share";
    case model::Rule::kReclaimQuota:
      return "its queue is within its quota, and another is above its own";
    case model::Rule::kPreempt:
      return "it has a higher priority in its queue";
    case model::Rule::kResize:
      return "elastic jobs of its queue get the sizes that pay best";
    case model::Rule::kStale:
    case model::Rule::kDrain:
    case model::Rule::kReservation:  // by these nobody leaves for another job
    case model::Rule::kFreeCapacity:
      break;
  }
  return "there is room";
}

std::optional<JobNumber> KnownTo(const EngineView& engine, JobNumber job) {
  return engine.Has(job) ? std::optional(job) : std::nullopt;
}

}  // namespace

Trial::Trial(Controller& control, const model::Job& job, const Access& access)
    : state_(control.state()),
      engine_(control.settings().engine),
      now_ms_(control.NowMs()),
      job_(state_.next_job()),
      start_(control.outlook().StartOf(job, std::nullopt, control.engine(), now_ms_)),
      access_(access) {
  const auto& user = access_.caller().user;
  const auto runtime = control.outlook().Runtime(job, user).value_or(engine::RuntimeGuess{});
  state_.Fold({now_ms_, model::JobSubmitted{job_,
                                            std::make_shared<const model::Job>(job),
                                            user,
                                            0,
                                            0,
                                            {},
                                            "",
                                            runtime.likely_ms,
                                            runtime.from}});
}

Trial::Trial(Controller& control, const state::JobRecord& job, const Access& access)
    : state_(control.state()),
      engine_(control.settings().engine),
      now_ms_(control.NowMs()),
      job_(job.id),
      held_(job.held),
      start_(control.outlook().StartOf(*job.spec, KnownTo(control.engine(), job.id),
                                       control.engine(), now_ms_)),
      access_(access) {
  if (job.held) state_.Fold({now_ms_, model::JobHeld{job_, false, access_.caller().user}});
}

void Trial::Fold(model::EventBody body) {
  const model::Event event{now_ms_, std::move(body)};
  state_.Fold(event);
  engine_.Apply(event, state_);
}

void Trial::Carry(const model::Plan& plan) {
  for (const auto& action : plan.actions) {
    const JobNumber id = engine_.NumberOf(action.job);
    const auto& job = *state_.Find(id);
    if (action.kind == model::ActionKind::kStart || action.kind == model::ActionKind::kGrow) {
      const auto launch =
          action.worker < job.workers.size() ? job.workers[action.worker].launch + 1 : 1;
      Fold(model::WorkerPlaced{id, action.worker, launch, engine_.NodeName(action.node),
                               action.devices, action.kind});
      continue;
    }
    const auto why = action.kind == model::ActionKind::kShrink ? StopWhy::kShrunk
                     : action.kind == model::ActionKind::kMove ? StopWhy::kMoved
                                                               : StopWhy::kPaused;
    const auto launch = job.workers[action.worker].launch;
    Fold(model::WorkerLeaving{id, action.worker, why, action.rule, 0, -1});
    if (engine_.NumberOf(action.cause) == job_) {
      const auto same = [&](const Displaced& one) { return one.job == id && one.what == why; };
      auto known = std::find_if(displaced_.begin(), displaced_.end(), same);
      if (known == displaced_.end()) {
        known = displaced_.insert(displaced_.end(), {id, why, action.rule, 0});
      }
      ++known->workers;
    }
    model::ExitFacts exit;
    exit.stopped = true;
    exit.ended_ms = now_ms_;
    Fold(model::WorkerEnded{id, action.worker, launch, exit});
  }
}

Result<model::DocNode> Trial::Run() {
  if (auto built = engine_.Build(state_, now_ms_); !built) return tl::unexpected(built.error());
  for (int round = 0; round < kMostRounds; ++round) {
    auto plan = engine_.Cycle(state_, now_ms_);
    if (!plan) return tl::unexpected(plan.error());
    Carry(*plan);
    if (state_.Find(job_)->Holds() || (plan->empty() && plan->complete)) break;
  }
  return View();
}

std::string Trial::WhyNot(const state::JobRecord& job) {
  switch (sim::BarOf(job, now_ms_)) {
    case sim::Bar::kFollows:
      return "it follows job " + std::to_string(job.follows.front().job) +
             (job.follows.size() > 1 ? " and others" : "");
    case sim::Bar::kBackOff:
      return "it failed a moment ago, and is tried again soon";
    case sim::Bar::kArrayTurn:
      return "its array's turn has not come";
    default:
      break;
  }
  const auto verdict = engine_.Explain(job_, now_ms_);
  return verdict ? engine::Sentence(engine_.cluster(), *verdict) : "";
}

model::DocNode Trial::View() {
  const auto& job = *state_.Find(job_);
  model::DocNode node = MapNode(), places = ListNode(), displaced = ListNode();
  for (std::uint32_t w = 0; w < job.workers.size(); ++w) {
    if (!job.workers[w].Holds()) continue;
    model::DocNode place = MapNode();
    Put(place, "worker", NumberNode(w));
    Put(place, "node", TextNode(job.workers[w].node));
    Put(place, "gpus", Devices(job.workers[w].devices));
    places.children.push_back(std::move(place));
  }
  for (const auto& one : displaced_) {
    displaced.children.push_back(
        DisplacedView(access_, *state_.Find(one.job), one.what, one.rule, one.workers));
  }
  const bool clear = displaced_.empty();
  std::int64_t within_ms = 0;  // they have gone
  for (const auto& one : displaced_) {
    within_ms = std::max(within_ms, state_.Find(one.job)->spec->checkpoint.grace_ms);
  }
  std::string sentence, why;
  if (job.Holds()) {
    sentence = clear ? "it would start at once"
                     : "it would start as soon as " + std::to_string(displaced_.size()) +
                           (displaced_.size() == 1 ? " job has" : " jobs have") +
                           " made room, within " + FormatDurationMs(within_ms);
    why = clear ? "there is room" : WhyOf(displaced_.front().rule);
  } else {
    why = WhyNot(job);
    sentence = "it would wait" + (why.empty() ? "" : ": " + why);
  }
  Put(node, "starts_now", model::BoolNode(job.Holds() && clear));
  Put(node, "when", TextNode(!job.Holds() ? "later" : clear ? "now" : "when-room-is-made"));
  if (job.Holds() && !clear) Put(node, "within_ms", NumberNode(within_ms));
  Put(node, "sentence", TextNode((held_ ? "once it is released, " : "") + sentence));
  Put(node, "why", TextNode(why));
  if (!job.Holds() && sim::BarOf(job, now_ms_) == sim::Bar::kNone) {
    const auto verdict = engine_.Explain(job_, now_ms_);
    if (verdict) {
      Put(node, "estimate", StartView(start_, engine_.cluster(), *verdict, now_ms_));
    }
  }
  Put(node, "places", std::move(places));
  Put(node, "displaced", std::move(displaced));
  return node;
}

}  // namespace muster::control
