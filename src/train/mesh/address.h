// Addresses: "127.0.0.1:80", "[::1]:80", and for a store also "store.example:80", as text.
//
// Workers give numbers to each other, so that none of them waits for a name server; a name is for
// people, and looked up where it is dialed.
#pragma once

#include <string>

#include "base/result.h"

namespace muster::train {

struct Address {
  std::string host;
  std::string port;  // empty: none
};

Address SplitAddress(const std::string& address);
std::string JoinAddress(const Address& address);

// With numbers for the name. May wait for a name server; numbers wait for nothing.
Result<std::string> ResolveAddress(const std::string& address);

// Of this side of a connection.
Address OwnAddress(int socket);

}  // namespace muster::train
