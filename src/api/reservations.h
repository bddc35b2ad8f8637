// Reservations: the calls about capacity that admins keep for a time.
//
// Who may see the queue that one is for sees it too; one that is for nobody is seen by whoever may
// see anything, since it is why their jobs wait. Only admins make, change and remove one.
#pragma once

#include "api/desk.h"

namespace muster::api {

void ListReservations(Desk& desk, const Call& call);
void GetReservation(Desk& desk, const Call& call);
void CreateReservation(Desk& desk, const Call& call);
void PutReservation(Desk& desk, const Call& call);
void DeleteReservation(Desk& desk, const Call& call);

bool SeesReservation(const Access& access, const std::string& queue);

}  // namespace muster::api
