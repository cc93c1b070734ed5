%% SPDX-License-Identifier: Apache-2.0
%% @doc What a server's supervisor has noted of the processes below it, kept outside of it: its
%% successor takes them over from here. (In the original this is the process Monitor_DB.)
%%
%% If the notes are lost, the supervisor has all of it, and starts new ones with that.
-module(weft_im_notes).

-export([note/3, forget/2, read/2]).
-export([init/4]).

-define(READ_MS, 3000).

%% @private
-spec init(weft_im_plan:service(), fresh | again, Server :: pos_integer(), Notes :: map()) ->
          no_return().
init(Service, _How, Server, Notes) ->
    put(weft_im, notes),
    case weft_im_names:claim(Service, {notes, Server}) of
        ok -> loop(Notes);
        {taken, Pid} -> exit({taken, Pid})
    end.

loop(Notes) ->
    receive
        {note, Key, Noted} -> loop(Notes#{Key => Noted});
        {forget, Key} -> loop(maps:remove(Key, Notes));
        {read, From, Ref} -> From ! {Ref, Notes}, loop(Notes);
        _Other -> loop(Notes)
    end.

%% @doc Notes a process, or that it is another one now.
-spec note(Notes :: pid(), weft_im_children:key(), {pid(), weft_im_children:start()}) -> ok.
note(Notes, Key, Noted) ->
    Notes ! {note, Key, Noted},
    ok.

-spec forget(Notes :: pid(), weft_im_children:key()) -> ok.
forget(Notes, Key) ->
    Notes ! {forget, Key},
    ok.

%% @doc All notes; none, if nobody has them.
-spec read(weft_im_plan:service(), Server :: pos_integer()) ->
          #{weft_im_children:key() => {pid(), weft_im_children:start()}}.
read(Service, Server) ->
    case weft_im_names:whereis(Service, {notes, Server}) of
        undefined -> #{};
        Pid ->
            case weft_im_ways:call(Service, Pid, read, ?READ_MS) of
                {ok, Notes} -> Notes;
                no_answer -> #{}
            end
    end.
