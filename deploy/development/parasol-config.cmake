# What find_package(Parasol) gives:
#
#   Parasol::parts           headers, for an OBJECT library of parts of one's own
#   Parasol::worker_main     the worker but for such parts: an executable of its
#   Parasol::evaluator_main  objects and this is a worker that has them; the same
#   Parasol::ps_main         for evaluator, ps and
#   Parasol::parasol_main    the tool `parasol`
#   Parasol::loop            training loops of one's own (docs/custom_loop.md)
#   Parasol::testing         what tests of parts use (GoogleTest is needed)
#
# Parts register themselves and nothing refers to them: the linker drops those in
# a STATIC library.
get_filename_component(_parasol_prefix "${CMAKE_CURRENT_LIST_FILE}" REALPATH)
get_filename_component(_parasol_prefix "${_parasol_prefix}/../../../.." ABSOLUTE)

function(_parasol_headers target)
  set_target_properties(${target} PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${_parasol_prefix}/include/parasol"
    INTERFACE_COMPILE_OPTIONS "@CFLAGS@"
    INTERFACE_COMPILE_FEATURES cxx_std_20)
endfunction()

# ARGN: what the linker needs beside Parasol's own libraries.
function(_parasol_library name)
  if(TARGET Parasol::${name})
    return()
  endif()
  add_library(Parasol::${name} STATIC IMPORTED)
  _parasol_headers(Parasol::${name})
  set_target_properties(Parasol::${name} PROPERTIES
    IMPORTED_LOCATION "${_parasol_prefix}/lib/libparasol_${name}.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES CXX
    INTERFACE_LINK_LIBRARIES "${_parasol_prefix}/lib/libparasol.a;${ARGN}")
endfunction()

if(NOT TARGET Parasol::parts)
  add_library(Parasol::parts INTERFACE IMPORTED)
  _parasol_headers(Parasol::parts)
endif()
