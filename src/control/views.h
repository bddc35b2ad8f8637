// Views: what people and programs see of the state, as trees that are written as JSON.
//
// One function per noun, all in one shape: id, name, spec (what was set or found), status (what
// goes on), labels, created_at, revision; the API and everything behind it shows the same, in the
// form that the OpenAPI document describes. Virtual and simulated things are marked in every view
// that has them; what a caller may not see is left out. Costs what is shown.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "control/access.h"
#include "control/controller.h"
#include "model/document.h"

namespace muster::control {

using model::DocNode;

// Values of `env` are for those who may act on the job, the token of a notebook for those who may
// enter it.
DocNode JobView(Controller& control, const Access& access, const state::JobRecord& job,
                bool detail);
// As a job, with counts of its tasks; `detail`: with its file.
DocNode ArrayView(const state::State& state, const Access& access, const state::ArrayRecord& array,
                  bool detail);
DocNode WorkersView(Controller& control, const Access& access, const state::JobRecord& job);
// Why a job is in the phase it is in, and what would change it.
DocNode WhyView(Controller& control, const Access& access, const state::JobRecord& job);
// Of an array that has ended; of another one that of a task, with this put to it.
DocNode WhyView(const state::State& state, const state::ArrayRecord& array);
void PutArray(const state::State& state, const state::ArrayRecord& array, DocNode& node);
DocNode NodeView(Controller& control, const state::NodeRecord& record);
std::vector<DocNode> PoolsView(Controller& control);
DocNode TopologyView(Controller& control);
// GPUs, one by one: who holds them is looked up once.
class GpuViews {
 public:
  GpuViews(Controller& control, Access access);
  const std::vector<std::string>& ids() const { return ids_; }
  DocNode View(std::size_t index) const;

 private:
  using Place = std::pair<const state::NodeRecord*, std::size_t>;
  Access access_;
  std::vector<std::string> ids_;
  std::vector<Place> places_;
  std::map<std::pair<std::string, std::size_t>, std::vector<const state::JobRecord*>> holders_;
};
std::vector<DocNode> QueuesView(Controller& control, const Access& access);
DocNode QueueView(Controller& control, const model::Queue& queue);
// The policies that are remembered and the default, the one in force first.
std::vector<DocNode> PoliciesView(Controller& control);
// By its id, `current` or `default`, with every setting.
Result<DocNode> PolicyView(Controller& control, const std::string& policy);
// What this one does otherwise than the one in force: setting, before, after.
DocNode PolicyChanges(Controller& control, const engine::SettingValues& next);
// The one in force as its file; and the revision in which it came, 0 for the default.
std::string PolicyText(Controller& control);
std::uint64_t PolicyRevision(Controller& control);
// Reservations, one by one: who holds what is looked up once.
class ReservationViews {
 public:
  explicit ReservationViews(Controller& control);
  // One that is only tried has no revision, and no age is shown of it.
  DocNode View(const state::ReservationRecord& record) const;

 private:
  Controller& control_;
  // The GPUs that each queue holds, by node.
  std::map<std::string, std::map<std::string, std::uint64_t>> held_;
};
// As it was set: for the trail, and to set it again.
DocNode ReservationSpec(const model::Reservation& reservation);
DocNode RecordView(const state::Record& record, const model::EventBody& body);
// A decision of the scheduler, where the event is one.
std::optional<DocNode> DecisionView(const state::Record& record, const model::EventBody& body);

// A checkpoint that a worker reported, where the event is one.
std::optional<DocNode> CheckpointView(const state::Record& record, const model::EventBody& body);

}  // namespace muster::control
