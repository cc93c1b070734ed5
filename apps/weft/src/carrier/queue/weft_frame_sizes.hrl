%% SPDX-License-Identifier: Apache-2.0
%% Sizes that the fair queue, and who fetches frames for it, have to agree about.

%% A frame of this size or more waits in the queue of its sender.
-define(SMALL_BYTES, 16384).
%% A payload of small frames is full at this size, which is a fragment of the VM and a bit more.
-define(EXPRESS_BYTES, 66560).
