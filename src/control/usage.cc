#include "control/usage.h"

#include <bit>
#include <utility>

#include "base/units.h"
#include "control/controller.h"
#include "model/document_writer.h"

namespace muster::control {
namespace {

std::int64_t GpuMsOf(const state::JobRecord& job, std::int64_t now_ms) {
  const auto ran = job.ran_ms + (job.running_since_ms > 0 ? now_ms - job.running_since_ms : 0);
  std::int64_t milli = 0;
  const auto roles = WorkerRoles(*job.spec);
  for (std::size_t w = 0; w < job.workers.size() && w < roles.size(); ++w) {
    const auto& gpu = job.spec->roles[static_cast<std::size_t>(roles[w])].request.gpu;
    const auto each = gpu.kind == model::GpuKind::kShare ? gpu.share_milli : 1000;
    milli += std::popcount(job.workers[w].devices) * each;
  }
  return ran * milli / 1000;
}

}  // namespace

Usage::Usage(Access access, std::string by, std::int64_t since_ms)
    : access_(std::move(access)), by_(std::move(by)), since_ms_(since_ms) {}

bool Usage::Wants(const std::string& user, const std::string& queue, std::int64_t ended_ms) const {
  return ended_ms >= since_ms_ && access_.Sees(user, queue);
}

void Usage::Add(const state::JobRecord& job, std::int64_t now_ms) {
  if (!Wants(job.user, job.spec->queue, job.ending ? job.ending->at_ms : now_ms)) return;
  const auto name = by_ == "queue" ? job.spec->queue : by_ == "job" ? job.name() : job.user;
  auto& row = used_[by_ == "job" ? std::to_string(job.id) : name];  // names are not unique
  row.name = name;
  row.gpu_ms += GpuMsOf(job, now_ms);
  ++row.jobs;
  row.running += job.Holds() ? 1 : 0;
}

std::vector<model::DocNode> Usage::View() const {
  std::vector<model::DocNode> list;
  for (const auto& [id, row] : used_) {
    model::DocNode node = model::MapNode();
    Put(node, "id", model::TextNode(id));
    Put(node, "name", model::TextNode(row.name));
    Put(node, "gpu_hours", model::PlainNode(FormatMilli(row.gpu_ms / 3600)));
    Put(node, "jobs", model::NumberNode(row.jobs));
    Put(node, "running", model::NumberNode(row.running));
    list.push_back(std::move(node));
  }
  return list;
}

}  // namespace muster::control
