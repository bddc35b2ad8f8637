// Reservations: which GPUs an admin's wish keeps, or why it cannot keep any.
//
// The places are chosen when the wish is made and stand until it is changed: nodes whole and the
// largest first, and what is left over from the smallest that has enough, so that few are broken.
// At no time do reservations keep more GPUs of a node than it has. A type is that of all GPUs of a
// node, since which of them are kept is left to the scheduler. Changes nothing. Costs the nodes and
// the parts of all reservations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "model/reservation.h"
#include "state/state.h"

namespace muster::control {

struct ReservationWish {
  std::string name;
  std::string queue;                    // empty: for nobody
  std::optional<std::int64_t> from_ms;  // none: from now on
  std::int64_t to_ms = 0;
  std::vector<std::string> nodes;  // only these, also where they are down or cordoned; empty: any
  int gpus = 0;                    // 0: all of `nodes`
  std::string gpu_type;            // empty: any
  std::string about;
};

inline constexpr std::size_t kMostReservations = 1'000;

// One of the same name is replaced by it.
Result<model::Reservation> Book(const state::State& state, const ReservationWish& wish,
                                std::int64_t now_ms);

}  // namespace muster::control
