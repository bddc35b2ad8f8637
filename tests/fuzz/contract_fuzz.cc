// Any bytes through the decoders of the contract: no crash, no hang, no leak; an error says
// something; and what is accepted is the same after being written and read again.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "contract/door.h"
#include "contract/frames.h"
#include "contract/lines.h"
#include "contract/order.h"
#include "contract/records.h"
#include "contract/tell.h"

namespace {

namespace contract = muster::contract;

// By their texts: a number that is none equals nothing, not even itself.
template <typename Decode>
void CheckRoundTrip(Decode decode, std::string_view text) {
  const auto value = decode(text);
  if (!value) {
    MUSTER_CHECK(!value.error().message.empty(), "an error says what is wrong");
    return;
  }
  const auto written = contract::Encode(*value);
  const auto again = decode(written);
  MUSTER_CHECK(again.has_value(), written);
  MUSTER_CHECK(contract::Encode(*again) == written, written);
}

// In one piece and byte by byte: the same frames, and the same place where there are none any more.
void CheckFrames(std::string_view bytes) {
  contract::FrameReader whole, dribbled;
  whole.Add(bytes);
  for (const char byte : bytes) dribbled.Add({&byte, 1});
  while (true) {
    const auto a = whole.Next();
    const auto b = dribbled.Next();
    MUSTER_CHECK(a.has_value() == b.has_value(), "how bytes arrive decides nothing");
    if (!a || !*a) return;
    MUSTER_CHECK(*a == *b, "how bytes arrive changes nothing");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  CheckRoundTrip(contract::DecodeOrder, text);
  CheckRoundTrip(contract::DecodeStart, text);
  CheckRoundTrip(contract::DecodeExit, text);
  CheckRoundTrip(contract::DecodeReport, text);
  CheckRoundTrip(contract::DecodeCheckpoint, text);
  CheckRoundTrip(contract::DecodeTell, text);
  CheckRoundTrip(contract::DecodeSaid, text);
  CheckRoundTrip(contract::DecodeTold, text);
  CheckRoundTrip(contract::DecodeDoorRequest, text);
  CheckFrames(text);
  return 0;
}
