// Signals by name: "SIGUSR1", as job files and orders write them.
//
// Numbers differ between architectures and mean nothing to a reader, so only names travel.
// Real-time signals have no portable names and are left out.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace muster::contract {

std::optional<int> SignalNumber(std::string_view name);
std::string SignalName(int number);  // "SIGUSR1"; "signal 77" where it has no name

}  // namespace muster::contract
