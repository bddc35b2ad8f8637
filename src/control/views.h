// Views: what people and programs see of the state, as trees that are written as JSON.
//
// One function per noun; the API and everything behind it shows the same. Virtual and simulated
// things are marked in every view that has them. Costs what is shown.
#pragma once

#include <cstdint>
#include <string>

#include "control/controller.h"
#include "model/document.h"

namespace muster::control {

using model::DocNode;

DocNode JobView(Controller& control, const state::JobRecord& job, bool detail);
DocNode ArrayView(const state::State& state, const state::ArrayRecord& array);
// Why a job is in the phase it is in, and what would change it.
DocNode WhyView(Controller& control, const state::JobRecord& job);
DocNode NodesView(Controller& control);
DocNode GpusView(Controller& control);
DocNode QueuesView(Controller& control);
DocNode RecordView(const state::Record& record, const model::EventBody& body);

}  // namespace muster::control
