// Simulations: the calls about what would have been under another policy.
//
// A replay of the journal shows everybody's jobs, so these calls are for admins. Nothing in the
// journal changes by them: they leave no trace and know no keys.
#pragma once

#include "api/desk.h"
#include "api/worker.h"
#include "control/simulations.h"

namespace muster::api {

// What is asked for is read by the clerk: it may be a long table.
void BeginSimulation(Desk& desk, Worker& clerk, control::Simulations& simulations,
                     const Call& call);
void ListSimulations(Desk& desk, control::Simulations& simulations, const Call& call);
void GetSimulation(Desk& desk, control::Simulations& simulations, const Call& call);
void GetSimulationReport(Desk& desk, control::Simulations& simulations, const Call& call);
void DeleteSimulation(Desk& desk, control::Simulations& simulations, const Call& call);

}  // namespace muster::api
