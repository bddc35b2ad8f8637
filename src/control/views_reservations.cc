#include <algorithm>
#include <bit>

#include "control/view_parts.h"
#include "control/views.h"

namespace muster::control {

using model::ListNode;
using model::MapNode;
using model::NumberNode;
using model::Put;
using model::TextNode;

DocNode ReservationSpec(const model::Reservation& reservation) {
  DocNode spec = MapNode();
  std::vector<std::string> nodes;
  std::int64_t gpus = 0;
  nodes.reserve(reservation.parts.size());
  for (const auto& part : reservation.parts) {
    nodes.push_back(part.node);
    gpus += part.gpus;
  }
  if (!reservation.queue.empty()) Put(spec, "queue", TextNode(reservation.queue));
  Put(spec, "from", TimeNode(reservation.from_ms));
  Put(spec, "to", TimeNode(reservation.to_ms));
  Put(spec, "gpus", NumberNode(gpus));
  Put(spec, "nodes", model::TextListNode(nodes));
  if (!reservation.about.empty()) Put(spec, "about", TextNode(reservation.about));
  return spec;
}

ReservationViews::ReservationViews(Controller& control) : control_(control) {
  for (const auto& [id, job] : control.state().jobs()) {
    for (const auto& worker : job.workers) {
      if (worker.Holds()) held_[worker.node][job.spec->queue] |= worker.devices;
    }
  }
}

DocNode ReservationViews::View(const state::ReservationRecord& record) const {
  const auto& one = record.reservation;
  DocNode node = ObjectNode(one.name, one.name), status = MapNode(), parts = ListNode();
  std::int64_t free = 0, used = 0;
  for (const auto& part : one.parts) {
    DocNode shown = MapNode();
    Put(shown, "node", TextNode(part.node));
    Put(shown, "gpus", NumberNode(part.gpus));
    parts.children.push_back(std::move(shown));
    std::uint64_t theirs = 0, all = 0;
    if (const auto held = held_.find(part.node); held != held_.end()) {
      for (const auto& [queue, devices] : held->second) {
        all |= devices;
        const bool below = queue == one.queue || queue.starts_with(one.queue + "/");
        if (!one.queue.empty() && below) theirs |= devices;
      }
    }
    used += std::min(part.gpus, std::popcount(theirs));
    const auto known = control_.state().nodes().find(part.node);
    if (known == control_.state().nodes().end() || !known->second.up) continue;
    const int there = static_cast<int>(known->second.node.gpus.size()) - std::popcount(all);
    free += std::clamp(there, 0, part.gpus);
  }
  Put(status, "phase", TextNode(one.from_ms > control_.NowMs() ? "upcoming" : "active"));
  Put(status, "parts", std::move(parts));
  Put(status, "gpus_free", NumberNode(free));
  Put(status, "used_by_queue", NumberNode(used));
  if (!record.by.empty()) Put(status, "set_by", TextNode(record.by));
  PutPoolMarks(control_, status);
  Put(node, "spec", ReservationSpec(one));
  Put(node, "status", std::move(status));
  if (record.revision != 0) PutAge(node, record.created_ms, record.revision);
  return node;
}

}  // namespace muster::control
