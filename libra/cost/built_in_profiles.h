// The JSON files of data/profiles, compiled in: no file is needed at run time, and the numbers have
// one home. Internal to this room; built_in_profiles.cpp.in is filled in when CMake configures.
#pragma once

namespace libra {

extern const char* const kH200ProfileJson;

}  // namespace libra
