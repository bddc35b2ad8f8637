#include <fmt/format.h>

#include <cmath>

#include "control/access.h"
#include "control/runs.h"
#include "control/view_parts.h"
#include "model/job_codec.h"

namespace muster::control {

using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

namespace {

// As text where JSON has no number for it: a loss may be infinite.
DocNode RealNode(double value) {
  const auto text = fmt::format("{}", value);
  return std::isfinite(value) ? model::PlainNode(text) : TextNode(text);
}

template <typename Numbers>
DocNode NumbersNode(const Numbers& numbers) {
  DocNode node = MapNode();
  for (const auto& [name, number] : numbers) {
    if constexpr (requires { number.value; }) {
      Put(node, name, RealNode(number.value));
    } else {
      Put(node, name, RealNode(number));
    }
  }
  return node;
}

void PutFinite(DocNode& node, const char* key, double value) {
  if (std::isfinite(value)) Put(node, key, RealNode(value));
}

DocNode StatusNode(const state::RunHead& head, const state::JobRecord* job, std::int64_t now_ms) {
  DocNode status = MapNode();
  Put(status, "phase", TextNode(job == nullptr ? head.end : std::string(Name(PhaseOf(*job)))));
  auto ran_ms = head.ran_ms;
  if (job != nullptr) {
    ran_ms = job->ran_ms + (job->running_since_ms > 0 ? now_ms - job->running_since_ms : 0);
  }
  Put(status, "ran_ms", NumberNode(ran_ms));
  Put(status, "reports", NumberNode(head.reports));
  if (head.reports > 0) {
    Put(status, "first_at", TimeNode(head.first_ms));
    Put(status, "last_at", TimeNode(head.last_ms));
    Put(status, "step", NumberNode(head.step));
  }
  if (head.samples >= 0) Put(status, "samples", NumberNode(head.samples));
  const auto loss = head.numbers.find("loss");
  if (loss != head.numbers.end()) PutFinite(status, "loss", loss->second.value);
  if (head.best_loss && std::isfinite(head.best_loss->value)) {
    Put(status, "best_loss", RealNode(head.best_loss->value));
    Put(status, "best_step", NumberNode(head.best_step));
  }
  Put(status, "numbers", NumbersNode(head.numbers));
  if (head.model_path.empty()) return status;
  DocNode kept = MapNode();
  Put(kept, "path", TextNode(head.model_path));
  Put(kept, "hash", TextNode(head.model_hash));
  Put(kept, "numbers", NumbersNode(head.model_numbers));
  Put(status, "model", std::move(kept));
  return status;
}

}  // namespace

DocNode RunView(const state::RunHead& head, const state::JobRecord* job, std::int64_t now_ms) {
  DocNode node = ObjectNode(std::to_string(head.job), head.name);
  Put(node, "user", TextNode(head.user));
  Put(node, "queue", TextNode(head.queue));
  Put(node, "created_at", TimeNode(head.submitted_ms));
  Put(node, "status", StatusNode(head, job, now_ms));
  return node;
}

DocNode RunDetailView(const state::Run& run, const state::JobRecord& job, const Access& access,
                      std::int64_t now_ms) {
  DocNode node = RunView(run.head, &job, now_ms);
  auto& file = Put(node, "spec", model::JobToNode(*job.spec));
  if (!access.Acts(job.user, job.spec->queue)) MaskEnv(file);
  auto& points = Put(node, "points", ListNode());
  for (const auto& point : run.curve.points()) {
    DocNode one = MapNode();
    Put(one, "step", NumberNode(point.step));
    Put(one, "at", TimeNode(point.at_ms));
    if (point.samples >= 0) Put(one, "samples", NumberNode(point.samples));
    Put(one, "numbers", NumbersNode(run.curve.NumbersOf(point)));
    points.children.push_back(std::move(one));
  }
  return node;
}

}  // namespace muster::control
